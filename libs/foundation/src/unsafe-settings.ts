/**
 * Finds unsafe combinations of settings that are valid individually. For example, they would sell real services for
 * simulated money, send credentials or events without encryption, or make the gateway call itself. Such a combination
 * prevents the start.
 */
import pg from 'pg';
import { z } from 'zod';
import { parseEventStoreDbAddress } from '#eventstore';
import { listAddresses } from '#postgres';
import { PAYMENT_BACKEND_VARIABLES, RATE_SOURCE_VARIABLES } from './external-service-settings.ts';
import { isLoopback, isPublic, namesSandbox, parseOrigin, readHost } from './hosts.ts';
import { getAddressVariable, isConfigured, type ProviderSettingsSpec } from './provider-settings.ts';
import { type Environment, flag, list, readVariable } from './setting-types.ts';
import { findRealSetting, isSandboxAllowed } from './simulation.ts';

export const SAFETY_SETTINGS = {
  allowSandbox: flag(
    'ALLOW_SANDBOX',
    'true: the sandbox simulates payments if no payment backend is set, although a provider, payment backend or public address is real; only for trials, because the money of the sandbox is free',
  ),
  plaintextStores: list(
    'PLAINTEXT_STORES',
    z.string().regex(/^[\w.-]+$|^\[[\da-f:]+\]$/i),
    'names or addresses of hosts, without ports',
    'Hosts of DATABASE_URL, CONTENT_DATABASE_URL, EVENTSTORE_URL and S3_ENDPOINT on a private network, separated by commas, that may be used without TLS together with real services; unset: only this host',
  ),
};

/** Addresses to which credentials are sent, or that exchange rates come from, in addition to those of providers. */
const URL_VARIABLES = [...PAYMENT_BACKEND_VARIABLES, 'STRIPE_API_URL', 'PRIVATE_RELAYS', ...RATE_SOURCE_VARIABLES];
const STORE_VARIABLES = ['DATABASE_URL', 'CONTENT_DATABASE_URL', 'EVENTSTORE_URL', 'S3_ENDPOINT'];
/** 32 random bytes have about 30 different values. Fewer than this minimum occur less than once in 10¹⁵ keys. */
const MIN_DISTINCT_BYTES = 16;

/** Returns one sentence for every unsafe combination. */
export function listUnsafeSettings(env: Environment, providers: readonly ProviderSettingsSpec[]): readonly string[] {
  const real = findRealSetting(env, providers);
  const always = listContradictions(env, providers);
  if (real === undefined) return always;
  return [
    ...listSandboxIssues(env, providers, real),
    ...listPlaintextIssues(env, providers, real),
    ...listKeyIssues(env),
    ...always,
  ];
}

function listSandboxIssues(
  env: Environment,
  providers: readonly ProviderSettingsSpec[],
  real: string,
): readonly string[] {
  if (isSandboxAllowed(env)) return [];
  const issues: string[] = [];
  const advice = `${real} is real; set a real one, or ALLOW_SANDBOX=true for a trial`;
  if (providers.length > 0 && !providers.some((provider) => isConfigured(env, provider)))
    issues.push(`No provider has an API key or an address, so all of them would be simulated, although ${advice}.`);
  for (const variable of listUrlVariables(providers))
    if (namesSandbox(env, variable))
      issues.push(
        `${variable} is the address of the sandbox, whose money and models are not real, although ${advice}.`,
      );
  if (readVariable(env, 'CATALOGUE_DAY') !== undefined)
    issues.push(
      `CATALOGUE_DAY must not be set, because models that no longer exist would be sold, although ${real} is real.`,
    );
  if (/^(sk|rk)_test_/.test(readVariable(env, 'STRIPE_SECRET_KEY') ?? ''))
    issues.push(`STRIPE_SECRET_KEY is a test key, whose money is free, although ${advice}.`);
  const lnd = readVariable(env, 'LND_REST_URL');
  if (lnd !== undefined && !namesSandbox(env, 'LND_REST_URL') && !readVariable(env, 'LND_MACAROON'))
    issues.push('LND_MACAROON must be set if LND_REST_URL is set.');
  return issues;
}

/** Returns the settings with addresses of external services. */
function listUrlVariables(providers: readonly ProviderSettingsSpec[]): readonly string[] {
  return [...providers.map(getAddressVariable), ...URL_VARIABLES];
}

function listPlaintextIssues(
  env: Environment,
  providers: readonly ProviderSettingsSpec[],
  real: string,
): readonly string[] {
  const allowedHosts = readVariable(env, 'PLAINTEXT_STORES')?.toLowerCase().split(',') ?? [];
  const isExposed = (host: string) =>
    !isLoopback(host) && !allowedHosts.some((allowedHost) => allowedHost.trim() === host);
  const stores = STORE_VARIABLES.flatMap((variable) => {
    const host = listPlaintextHosts(env, variable).find(isExposed);
    if (host === undefined) return [];
    return `${variable} has no TLS, and ${host} is another host, although ${real} is real: use TLS, or add the host to PLAINTEXT_STORES.`;
  });
  const addresses = listUrlVariables(providers).flatMap((variable) => {
    const host = listPlaintextHosts(env, variable).find(isPublic);
    if (host === undefined) return [];
    return `${variable} must begin with https://: others could read what is sent to ${host}.`;
  });
  return [...stores, ...addresses];
}

/** Returns the hosts that a setting connects to without TLS. */
function listPlaintextHosts(env: Environment, variable: string): readonly string[] {
  const value = readVariable(env, variable);
  if (value === undefined) return [];
  const [protocol] = value.split('://', 1);
  switch (protocol) {
    case 'postgres':
    case 'postgresql':
      return listAddresses(value).flatMap((one) =>
        toList(findPlaintextPostgresHost(one, readVariable(env, 'PGSSLMODE'))),
      );
    case 'esdb':
    case 'esdb+discover': {
      const address = parseEventStoreDbAddress(value);
      return typeof address === 'string' || address.usesTls ? [] : address.nodes.map(({ host }) => host);
    }
    default:
      return protocol?.toLowerCase() === 'http' ? toList(readHost(env, variable)) : [];
  }
}

function toList(host: string | undefined): readonly string[] {
  return host === undefined ? [] : [host];
}

/** Returns the host of an address without TLS, parsed as the client does; undefined for a socket on this host. */
function findPlaintextPostgresHost(connectionString: string, mode: string | undefined): string | undefined {
  try {
    const { ssl, host } = new pg.Client({ connectionString });
    const isByMode = mode !== undefined && mode !== 'disable';
    return ssl || isByMode || host.startsWith('/') ? undefined : host.toLowerCase();
  } catch {
    return undefined; // for example a missing certificate file: the connection reports it
  }
}

/** Checks only the first key: an older one must stay in the key ring even if it is weak. */
function listKeyIssues(env: Environment): readonly string[] {
  const [key = ''] = readVariable(env, 'MASTER_KEY')?.split(',') ?? [];
  const bytes = [...Buffer.from(key.trim(), 'hex')];
  if (bytes.length === 0) return [];
  const steps = bytes.map((byte, i) => (byte - (bytes[i - 1] ?? 0)) & 0xff);
  const minDistinctBytes = Math.min(new Set(bytes).size, new Set(steps).size);
  return minDistinctBytes < MIN_DISTINCT_BYTES
    ? [
        'MASTER_KEY is not random: generate one with "openssl rand -hex 32", and put it before a key that is in use, separated by a comma.',
      ]
    : [];
}

function isLocalPort(origin: string, port: string): boolean {
  const { hostname, port: originPort, protocol } = new URL(origin);
  return isLoopback(hostname) && (originPort || (protocol === 'https:' ? '443' : '80')) === port;
}

function listContradictions(env: Environment, providers: readonly ProviderSettingsSpec[]): readonly string[] {
  const issues: string[] = [];
  const address = readVariable(env, 'PUBLIC_BASE_URL') ?? '';
  const host = readHost(env, 'PUBLIC_BASE_URL');
  if (address.startsWith('http:') && host !== undefined && isPublic(host) && !host.endsWith('.onion'))
    issues.push(`PUBLIC_BASE_URL must begin with https://: others could read the API keys that are sent to ${host}.`);
  const [port, audioPort] = [readVariable(env, 'PORT') ?? '3000', readVariable(env, 'AUDIO_PORT')];
  if (port !== '0' && port === audioPort) issues.push('AUDIO_PORT must differ from PORT.');
  const ownOrigins = [address, `http://${readVariable(env, 'HOST') ?? '127.0.0.1'}:${port}`].map(parseOrigin);
  for (const variable of ['SANDBOX_URL', ...listUrlVariables(providers)]) {
    const origin = parseOrigin(readVariable(env, variable) ?? '');
    if (origin !== undefined && (ownOrigins.includes(origin) || isLocalPort(origin, port)))
      issues.push(`${variable} is the address of the gateway itself, which would call itself: set another address.`);
  }
  return issues;
}
