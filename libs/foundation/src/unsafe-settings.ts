/**
 * Finds unsafe combinations of settings that are valid individually. For example, they would sell real services for
 * simulated money, send credentials or events without encryption, or make the gateway call itself. Such a combination
 * prevents the start.
 */
import { BlockList, isIP } from 'node:net';
import pg from 'pg';
import { parseEventStoreDbAddress } from '#eventstore';
import { listAddresses } from '#postgres';
import {
  hasRealPaymentBackend,
  PAYMENT_BACKEND_VARIABLES,
  RATE_SOURCE_VARIABLES,
  SANDBOX_KEY,
  SANDBOX_STRIPE_KEY,
  toSandboxUrl,
} from './external-service-settings.ts';
import { hasProviderKey, listProviderVariables, type ProviderSettingsSpec } from './provider-settings.ts';
import { type Environment, flag, list, readVariable } from './setting-types.ts';

export const SAFETY_SETTINGS = {
  allowSandbox: flag(
    'ALLOW_SANDBOX',
    'true: processes start even if the sandbox simulates payments or providers while a provider, payment backend or public address is real; only for trials, because the money of the sandbox is free',
  ),
  plaintextStores: list(
    'PLAINTEXT_STORES',
    (host) => /^[\w.-]+$|^\[[\da-f:]+\]$/i.test(host),
    'names or addresses of hosts, without ports',
    'Hosts of DATABASE_URL, CONTENT_DATABASE_URL, EVENTSTORE_URL and S3_ENDPOINT on a private network, separated by commas, that may be used without TLS together with real services; unset: only this host',
  ),
};

/** Addresses to which credentials are sent, or that exchange rates come from, in addition to those of providers. */
const URL_VARIABLES = [...PAYMENT_BACKEND_VARIABLES, 'STRIPE_API_URL', ...RATE_SOURCE_VARIABLES];
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

/** Returns a setting that shows that real services, money or clients are involved; undefined if there is none. */
function findRealSetting(env: Environment, providers: readonly ProviderSettingsSpec[]): string | undefined {
  const sandbox = getSandboxOrigin(env);
  const isElsewhere = (variable: string) => {
    const value = readVariable(env, variable);
    if (value === undefined || value === SANDBOX_KEY || value === SANDBOX_STRIPE_KEY) return false;
    return parseOrigin(value) !== sandbox;
  };
  const providerVariables = listProviderVariables(providers);
  const publicHost = readHost(env, 'PUBLIC_BASE_URL');
  return (
    providerVariables.find(isElsewhere) ??
    PAYMENT_BACKEND_VARIABLES.find(isElsewhere) ??
    (publicHost !== undefined && isPublic(publicHost) ? 'PUBLIC_BASE_URL' : undefined)
  );
}

function listSandboxIssues(
  env: Environment,
  providers: readonly ProviderSettingsSpec[],
  real: string,
): readonly string[] {
  if (readVariable(env, 'ALLOW_SANDBOX') === 'true') return [];
  const issues: string[] = [];
  const advice = `${real} is real; set a real one, or ALLOW_SANDBOX=true for a trial`;
  if (!hasRealPaymentBackend(env))
    issues.push(
      `No payment backend is set (${PAYMENT_BACKEND_VARIABLES.join(', ')}), so the sandbox would receive payments, and its money is free, although ${advice}.`,
    );
  if (providers.length > 0 && !hasProviderKey(env, providers))
    issues.push(`No provider has an API key, so those without an address would be simulated, although ${advice}.`);
  if (/^(sk|rk)_test_/.test(readVariable(env, 'STRIPE_SECRET_KEY') ?? ''))
    issues.push(`STRIPE_SECRET_KEY is a test key, whose money is free, although ${advice}.`);
  const lnd = readVariable(env, 'LND_REST_URL');
  if (lnd !== undefined && parseOrigin(lnd) !== getSandboxOrigin(env) && !readVariable(env, 'LND_MACAROON'))
    issues.push('LND_MACAROON must be set if LND_REST_URL is set.');
  return issues;
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
  const addresses = [...providers.map((provider) => `${provider.env}_BASE_URL`), ...URL_VARIABLES].flatMap(
    (variable) => {
      const host = listPlaintextHosts(env, variable).find(isPublic);
      if (host === undefined) return [];
      return `${variable} must begin with https://: others could read what is sent to ${host}.`;
    },
  );
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

function listContradictions(env: Environment, providers: readonly ProviderSettingsSpec[]): readonly string[] {
  const issues: string[] = [];
  const address = readVariable(env, 'PUBLIC_BASE_URL') ?? '';
  const host = readHost(env, 'PUBLIC_BASE_URL');
  if (address.startsWith('http:') && host !== undefined && isPublic(host) && !host.endsWith('.onion'))
    issues.push(`PUBLIC_BASE_URL must begin with https://: others could read the API keys that are sent to ${host}.`);
  const [port, audioPort] = [readVariable(env, 'PORT') ?? '3000', readVariable(env, 'AUDIO_PORT')];
  if (port !== '0' && port === audioPort) issues.push('AUDIO_PORT must differ from PORT.');
  const localAddresses = [readVariable(env, 'HOST') ?? '127.0.0.1', '127.0.0.1', 'localhost'].map(
    (hostname) => `http://${hostname}:${port}`,
  );
  const ownOrigins = [address, ...localAddresses].map(parseOrigin).filter((origin) => origin !== undefined);
  for (const variable of [
    'SANDBOX_URL',
    ...providers.map((provider) => `${provider.env}_BASE_URL`),
    ...URL_VARIABLES,
  ]) {
    const origin = parseOrigin(readVariable(env, variable) ?? '');
    if (origin !== undefined && ownOrigins.includes(origin))
      issues.push(`${variable} is the address of the gateway itself, which would call itself: set another address.`);
  }
  return issues;
}

function getSandboxOrigin(env: Environment): string | undefined {
  try {
    return parseOrigin(toSandboxUrl(env));
  } catch {
    return undefined; // reported as an invalid setting
  }
}

function parseOrigin(address: string): string | undefined {
  return /^https?:/.test(address) && URL.canParse(address) ? new URL(address).origin : undefined;
}

function readHost(env: Environment, variable: string): string | undefined {
  const value = readVariable(env, variable);
  if (value === undefined || !URL.canParse(value)) return undefined;
  return new URL(value).hostname.toLowerCase() || undefined;
}

const PRIVATE_NETWORKS = new BlockList();
for (const [network, prefix] of [
  ...([
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
    ['100.64.0.0', 10],
    ['169.254.0.0', 16],
  ] as const),
])
  PRIVATE_NETWORKS.addSubnet(network, prefix);
PRIVATE_NETWORKS.addSubnet('fc00::', 7, 'ipv6');
PRIVATE_NETWORKS.addSubnet('fe80::', 10, 'ipv6');
const LOOPBACK_ADDRESSES = new BlockList();
LOOPBACK_ADDRESSES.addSubnet('127.0.0.0', 8);
LOOPBACK_ADDRESSES.addAddress('::1', 'ipv6');
LOOPBACK_ADDRESSES.addAddress('0.0.0.0');

function isWithin(networks: BlockList, host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  const family = isIP(address);
  return family !== 0 && networks.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || isWithin(LOOPBACK_ADDRESSES, host);
}

/**
 * Returns whether the traffic to a host may leave private networks, because the host has neither a private address nor
 * a local name.
 */
function isPublic(host: string): boolean {
  if (isLoopback(host) || isWithin(PRIVATE_NETWORKS, host)) return false;
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0) return true;
  return host.includes('.') && !/\.(local|internal|lan|home\.arpa|test|svc|cluster)$/.test(host);
}
