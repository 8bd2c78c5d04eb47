/** Settings of vendors: which there are, the catalogue says. */
import { type Environment, given, optional, url } from './setting-kinds.ts';

/** A vendor, as far as its settings go: `<env>_BASE_URL` and `<env>_API_KEY`. */
export interface VendorSettings {
  readonly slug: string;
  readonly env: string;
  /** Its own address. */
  readonly baseUrl: string;
  /** Its path in the sandbox. */
  readonly sandboxPath: string;
}

/** The address and the credential of a vendor. */
export interface Reach {
  readonly baseUrl: string;
  readonly credential: string;
}

/**
 * Vendors without settings are in the sandbox, as long as no vendor has a key; else they are left out.
 * @throws SettingError
 */
export function reachedVendors(
  env: Environment,
  vendors: readonly VendorSettings[],
  sandbox: { readonly url: string; readonly key: string },
): ReadonlyMap<string, Reach> {
  const isReal = vendors.some((vendor) => given(env, `${vendor.env}_API_KEY`) !== undefined);
  return new Map(
    vendors.flatMap(({ slug, env: prefix, baseUrl: own, sandboxPath }) => {
      const key = given(env, `${prefix}_API_KEY`);
      const address = optional(url(`${prefix}_BASE_URL`, ['http:', 'https:'], '')).read(env);
      if (address === undefined && key === undefined && isReal) return [];
      const baseUrl = address ?? (key === undefined ? sandbox.url + sandboxPath : own);
      return [[slug, { baseUrl, credential: key ?? sandbox.key }] as const];
    }),
  );
}
