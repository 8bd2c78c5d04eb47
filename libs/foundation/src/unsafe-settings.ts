/**
 * Settings that are right each by itself, and together would sell what is real for money that is not, send credentials or facts
 * over a wire that others read, or have the gateway ask itself. They refuse the start, all at once.
 */
import { BlockList, isIP } from 'node:net';
import pg from 'pg';
import { parseEventStoreDbAddress } from '#eventstore';
import {
  hasRealPaymentBackend,
  PAYMENT_BACKEND_VARIABLES,
  RATE_SOURCE_VARIABLES,
  SANDBOX_KEY,
  SANDBOX_STRIPE_KEY,
  toSandboxUrl,
} from './external-service-settings.ts';
import { hasProviderKey, type ProviderSettingsSpec } from './provider-settings.ts';
import { type Environment, flag, list, readVariable } from './setting-types.ts';

export const SAFETY_SETTINGS = {
  allowSandbox: flag(
    'ALLOW_SANDBOX',
    'true: the sandbox also plays what has no setting where a vendor, a payment back end or a public address is real, for trying things out: its money is free',
  ),
  plaintextStores: list(
    'PLAINTEXT_STORES',
    (host) => /^[\w.-]+$|^\[[\da-f:]+\]$/i.test(host),
    'names or addresses of hosts, without ports',
    'Hosts of stores (DATABASE_URL, CONTENT_DATABASE_URL, EVENTSTORE_URL, S3_ENDPOINT) on a network that nobody else is on, separated by commas: they may be reached without TLS where something is real; unset: those on this machine',
  ),
};

/** Addresses that credentials or prices go over, beside those of vendors. */
const URL_VARIABLES = [...PAYMENT_BACKEND_VARIABLES, 'STRIPE_API_URL', ...RATE_SOURCE_VARIABLES];
const STORE_VARIABLES = ['DATABASE_URL', 'CONTENT_DATABASE_URL', 'EVENTSTORE_URL', 'S3_ENDPOINT'];
/** 32 random bytes have 30 different ones, and fewer than this once in 10¹⁵ keys. */
const MIN_DISTINCT_BYTES = 16;

/** One sentence for each finding. */
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

/** A setting that makes this more than a trial. */
function findRealSetting(env: Environment, providers: readonly ProviderSettingsSpec[]): string | undefined {
  const sandbox = getSandboxOrigin(env);
  const isElsewhere = (variable: string) => {
    const value = readVariable(env, variable);
    if (value === undefined || value === SANDBOX_KEY || value === SANDBOX_STRIPE_KEY) return false;
    return parseOrigin(value) !== sandbox;
  };
  const providerVariables = providers.flatMap((provider) => [`${provider.env}_API_KEY`, `${provider.env}_BASE_URL`]);
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
  const advice = `${real} is real; set what is, or ALLOW_SANDBOX=true to try things out`;
  if (!hasRealPaymentBackend(env))
    issues.push(
      `No back end that takes payments is set (${PAYMENT_BACKEND_VARIABLES.join(', ')}), so they are the sandbox's, whose money is free, while ${advice}.`,
    );
  if (providers.length > 0 && !hasProviderKey(env, providers))
    issues.push(`No vendor has a key, so all but those with an address are the sandbox's, while ${advice}.`);
  if (/^(sk|rk)_test_/.test(readVariable(env, 'STRIPE_SECRET_KEY') ?? ''))
    issues.push(`STRIPE_SECRET_KEY is a test key, whose money is free, while ${advice}.`);
  const lnd = readVariable(env, 'LND_REST_URL');
  if (lnd !== undefined && parseOrigin(lnd) !== getSandboxOrigin(env) && !readVariable(env, 'LND_MACAROON'))
    issues.push('LND_MACAROON must be set where LND_REST_URL is.');
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
    return `${variable} has no TLS, and ${host} is another machine, while ${real} is real: use TLS, or name the host in PLAINTEXT_STORES.`;
  });
  const addresses = [...providers.map((provider) => `${provider.env}_BASE_URL`), ...URL_VARIABLES].flatMap(
    (variable) => {
      const host = listPlaintextHosts(env, variable).find(isPublic);
      if (host === undefined) return [];
      return `${variable} must begin with https://: what goes to ${host} is read on the way.`;
    },
  );
  return [...stores, ...addresses];
}

/** The hosts of an address without TLS. */
function listPlaintextHosts(env: Environment, variable: string): readonly string[] {
  const value = readVariable(env, variable);
  if (value === undefined) return [];
  const [protocol] = value.split('://', 1);
  switch (protocol) {
    case 'postgres':
    case 'postgresql':
      return toList(findPlaintextPostgresHost(value, readVariable(env, 'PGSSLMODE')));
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

/** As the client reads it; a path is a socket on this machine. */
function findPlaintextPostgresHost(connectionString: string, mode: string | undefined): string | undefined {
  try {
    const { ssl, host } = new pg.Client({ connectionString });
    const isByMode = mode !== undefined && mode !== 'disable';
    return ssl || isByMode || host.startsWith('/') ? undefined : host.toLowerCase();
  } catch {
    return undefined; // a file that it names is missing: the connection says so
  }
}

/** The first of the ring alone: an old one stays there though it is weak. */
function listKeyIssues(env: Environment): readonly string[] {
  const [key = ''] = readVariable(env, 'MASTER_KEY')?.split(',') ?? [];
  const bytes = [...Buffer.from(key.trim(), 'hex')];
  if (bytes.length === 0) return [];
  const steps = bytes.map((byte, i) => (byte - (bytes[i - 1] ?? 0)) & 0xff);
  const minDistinctBytes = Math.min(new Set(bytes).size, new Set(steps).size);
  return minDistinctBytes < MIN_DISTINCT_BYTES
    ? [
        'MASTER_KEY is not random: make one with "openssl rand -hex 32", and put it before one that is in use with a comma between them.',
      ]
    : [];
}

function listContradictions(env: Environment, providers: readonly ProviderSettingsSpec[]): readonly string[] {
  const issues: string[] = [];
  const address = readVariable(env, 'PUBLIC_BASE_URL') ?? '';
  const host = readHost(env, 'PUBLIC_BASE_URL');
  if (address.startsWith('http:') && host !== undefined && isPublic(host) && !host.endsWith('.onion'))
    issues.push(`PUBLIC_BASE_URL must begin with https://: keys that go to ${host} are read on the way.`);
  const [port, audioPort] = [readVariable(env, 'PORT') ?? '3000', readVariable(env, 'AUDIO_PORT')];
  if (port !== '0' && port === audioPort) issues.push('AUDIO_PORT must be another port than PORT.');
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
      issues.push(`${variable} is the address of the gateway itself, which would ask itself.`);
  }
  return issues;
}

function getSandboxOrigin(env: Environment): string | undefined {
  try {
    return parseOrigin(toSandboxUrl(env));
  } catch {
    return undefined; // a finding of its own
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

/** Whether others are on the way to it: no address of a private network, and no name that the whole world does not know. */
function isPublic(host: string): boolean {
  if (isLoopback(host) || isWithin(PRIVATE_NETWORKS, host)) return false;
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0) return true;
  return host.includes('.') && !/\.(local|internal|lan|home\.arpa|test|svc|cluster)$/.test(host);
}
