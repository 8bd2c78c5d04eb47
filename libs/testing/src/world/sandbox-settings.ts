/** Settings with which the sandbox simulates all third parties that a test does not configure. */
import { readProviders } from '#catalogue';

export type EnvironmentVariables = Readonly<Record<string, string>>;

/** Prefix of a setting that is replaced by the URL of the sandbox. */
const SANDBOX_PREFIX = /^sandbox:(?=\/)/;
/** Set explicitly, because these URLs have no default if a test sets the URL of a payment backend. */
const RATES = {
  KRAKEN_URL: 'sandbox:/kraken',
  COINBASE_URL: 'sandbox:/coinbase',
  COINGECKO_URL: 'sandbox:/coingecko',
};
/**
 * Returns the settings of a test with those of the simulated services. A value may begin with `sandbox:` and a path.
 */
export function resolveSandboxSettings(environment: EnvironmentVariables, url: string): EnvironmentVariables {
  return resolveSandboxUrls(
    { ALLOW_SANDBOX: 'true', ...RATES, ...getProviderSettings(environment), ...environment },
    url,
  );
}

/** Replaces SANDBOX_PREFIX in settings by the URL of the sandbox. */
function resolveSandboxUrls(environment: EnvironmentVariables, url: string): EnvironmentVariables {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, value.replace(SANDBOX_PREFIX, url)]),
  );
}

/**
 * Returns settings with which the sandbox simulates each provider that a test does not configure. If the test sets a
 * key, there are none, so that the installation has only the providers that the test configures.
 */
function getProviderSettings(environment: EnvironmentVariables): EnvironmentVariables {
  const providers = readProviders();
  const isKey = (name: string) => providers.some(({ env }) => name.startsWith(`${env}_API_KEY`));
  if (Object.keys(environment).some(isKey)) return {};
  return Object.fromEntries(
    providers.flatMap(({ env, sandboxPath }) => [
      [`${env}_BASE_URL`, `sandbox:${sandboxPath}`],
      [`${env}_API_KEY`, 'sandbox'],
    ]),
  );
}
