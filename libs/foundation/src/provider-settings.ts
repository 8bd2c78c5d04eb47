/** Settings of the providers in the catalogue. */
import { type Environment, optional, readVariable, type SettingIssues, url } from './setting-types.ts';

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
  readonly credential: string;
}

/** Returns the names of the settings of providers. */
export function listProviderVariables(providers: readonly ProviderSettingsSpec[]): readonly string[] {
  return providers.flatMap((provider) => [getKeyVariable(provider), `${provider.env}_BASE_URL`]);
}

/** Returns the names of the settings that are paths of files with the keys of providers. */
export function listProviderFileVariables(providers: readonly ProviderSettingsSpec[]): readonly string[] {
  return providers.map((provider) => `${getKeyVariable(provider)}_FILE`);
}

export function getKeyVariable({ env }: ProviderSettingsSpec): string {
  return `${env}_API_KEY`;
}

/**
 * Returns whether any provider has an API key. If so, providers without settings are omitted; otherwise they are
 * simulated.
 */
export function hasProviderKey(env: Environment, providers: readonly ProviderSettingsSpec[]): boolean {
  return providers.some((provider) => readVariable(env, getKeyVariable(provider)) !== undefined);
}

/**
 * Returns the connection settings by slug. Providers without settings use the sandbox, or are omitted if any provider
 * has a key.
 */
export function selectConfiguredProviders(
  env: Environment,
  providers: readonly ProviderSettingsSpec[],
  sandbox: { readonly url: string; readonly key: string },
  issues: SettingIssues,
): ReadonlyMap<string, ProviderConnectionSettings> {
  const isReal = hasProviderKey(env, providers);
  return new Map(
    providers.flatMap((provider) => {
      const { slug, env: prefix, baseUrl: defaultBaseUrl, sandboxPath } = provider;
      const key = readVariable(env, getKeyVariable(provider));
      const address = issues.tryRead(() => optional(url(`${prefix}_BASE_URL`, ['http:', 'https:'], '')).read(env));
      if (address === undefined && key === undefined && isReal) return [];
      const baseUrl = address ?? (key === undefined ? sandbox.url + sandboxPath : defaultBaseUrl);
      return [[slug, { baseUrl, credential: key ?? sandbox.key }] as const];
    }),
  );
}
