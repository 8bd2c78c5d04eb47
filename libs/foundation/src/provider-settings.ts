/** Settings of the providers in the catalogue. */
import { z } from 'zod';
import { SANDBOX_KEY } from './external-service-settings.ts';
import { namesSandbox } from './hosts.ts';
import {
  allowFile,
  type Environment,
  optional,
  parseSetting,
  readVariable,
  type Setting,
  type SettingIssues,
  url,
} from './setting-types.ts';

/** What the catalogue specifies for the settings of a provider. */
export interface ProviderSettingsSpec {
  readonly slug: string;
  /** Prefix of the settings `<env>_BASE_URL` and `<env>_API_KEY`. */
  readonly env: string;
  /** Default address if the provider has an API key. */
  readonly baseUrl: string;
  /** Path of the simulated provider in the sandbox. */
  readonly sandboxPath: string;
}

export interface ProviderConnectionSettings {
  readonly baseUrl: string;
  /** Undefined for a provider that is called without a credential. */
  readonly credential: string | undefined;
  /** The sandbox simulates the provider. */
  readonly isSimulated?: true;
}

/** Returns the names of the settings of providers. */
export function listProviderVariables(providers: readonly ProviderSettingsSpec[]): readonly string[] {
  return providers.flatMap((provider) => [getKeyVariable(provider), getAddressVariable(provider)]);
}

/** Returns the names of the settings that are paths of files with the keys of providers. */
export function listProviderFileVariables(providers: readonly ProviderSettingsSpec[]): readonly string[] {
  return providers.map((provider) => `${getKeyVariable(provider)}_FILE`);
}

export function getKeyVariable({ env }: ProviderSettingsSpec): string {
  return `${env}_API_KEY`;
}

export function getAddressVariable({ env }: ProviderSettingsSpec): string {
  return `${env}_BASE_URL`;
}

/**
 * Returns the setting that configures a provider: its API key, or an address that is not the sandbox's. The key of the
 * sandbox configures no provider.
 */
export function findConfiguringVariable(env: Environment, provider: ProviderSettingsSpec): string | undefined {
  const [key, address] = [getKeyVariable(provider), getAddressVariable(provider)];
  if ((readVariable(env, key) ?? SANDBOX_KEY) !== SANDBOX_KEY) return key;
  return readVariable(env, address) !== undefined && !namesSandbox(env, address) ? address : undefined;
}

export function isConfigured(env: Environment, provider: ProviderSettingsSpec): boolean {
  return findConfiguringVariable(env, provider) !== undefined;
}

/** A header cannot have other characters, or providers do not expect them. */
const KEY_SCHEMA = z
  .string()
  .regex(/^[!-~]+$/, 'must consist of printable ASCII characters without spaces and line breaks');

/** Returns the setting of a provider's key, which is invalid for example if its file has two lines. */
export function createKeySetting(provider: ProviderSettingsSpec): Setting<string | undefined> {
  return optional(allowFile({ variable: getKeyVariable(provider), meaning: '', defaultValue: '', schema: KEY_SCHEMA }));
}

/**
 * Returns the connection settings by slug. If no provider is configured, the sandbox simulates all of them. Otherwise
 * those that are not configured are omitted, except for those whose address is explicitly that of the sandbox.
 */
export function selectConfiguredProviders(
  env: Environment,
  providers: readonly ProviderSettingsSpec[],
  sandboxUrl: string,
  issues: SettingIssues,
): ReadonlyMap<string, ProviderConnectionSettings> {
  const isAnyConfigured = providers.some((provider) => isConfigured(env, provider));
  return new Map(
    providers.flatMap((provider) => {
      const { slug, baseUrl: defaultBaseUrl, sandboxPath } = provider;
      const key = issues.tryRead(() => parseSetting(createKeySetting(provider), env));
      const setting = optional(url(getAddressVariable(provider), ''));
      const address = issues.tryRead(() => parseSetting(setting, env));
      if (isConfigured(env, provider))
        return [[slug, { baseUrl: address ?? defaultBaseUrl, credential: key }] as const];
      if (address === undefined && isAnyConfigured) return [];
      const baseUrl = address ?? sandboxUrl + sandboxPath;
      return [[slug, { baseUrl, credential: SANDBOX_KEY, isSimulated: true }] as const];
    }),
  );
}
