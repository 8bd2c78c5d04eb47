/** Settings of vendors: which there are, the catalogue says. */
import { type Environment, optional, readVariable, type SettingIssues, url } from './setting-types.ts';

/** A vendor, as far as its settings go: `<env>_BASE_URL` and `<env>_API_KEY`. */
export interface ProviderSettingsSpec {
  readonly slug: string;
  readonly env: string;
  /** Its own address. */
  readonly baseUrl: string;
  /** Its path in the sandbox. */
  readonly sandboxPath: string;
}

/** The address and the credential of a vendor. */
export interface ProviderConnectionSettings {
  readonly baseUrl: string;
  readonly credential: string;
}

/** Whether vendors without settings are left out: some vendor has a key. Else they are in the sandbox. */
export function hasProviderKey(env: Environment, providers: readonly ProviderSettingsSpec[]): boolean {
  return providers.some((provider) => readVariable(env, `${provider.env}_API_KEY`) !== undefined);
}

/** Vendors without settings are in the sandbox, as long as no vendor has a key; else they are left out. */
export function selectConfiguredProviders(
  env: Environment,
  providers: readonly ProviderSettingsSpec[],
  sandbox: { readonly url: string; readonly key: string },
  issues: SettingIssues,
): ReadonlyMap<string, ProviderConnectionSettings> {
  const isReal = hasProviderKey(env, providers);
  return new Map(
    providers.flatMap(({ slug, env: prefix, baseUrl: defaultBaseUrl, sandboxPath }) => {
      const key = readVariable(env, `${prefix}_API_KEY`);
      const address = issues.tryRead(() => optional(url(`${prefix}_BASE_URL`, ['http:', 'https:'], '')).read(env));
      if (address === undefined && key === undefined && isReal) return [];
      const baseUrl = address ?? (key === undefined ? sandbox.url + sandboxPath : defaultBaseUrl);
      return [[slug, { baseUrl, credential: key ?? sandbox.key }] as const];
    }),
  );
}
