/**
 * Settings that are right each by itself, and together would sell what is real for money that is not, send credentials or facts
 * over a wire that others read, or have the gateway ask itself. They refuse the start, all at once.
 */
import { BlockList, isIP } from 'node:net';
import pg from 'pg';
import { parseEventStoreDbAddress } from '#eventstore';
import {
  hasRealPaymentBackend,
  PAYMENT_BACKENDS,
  RATE_SOURCES,
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
    (each) => /^[\w.-]+$|^\[[\da-f:]+\]$/i.test(each),
    'names or addresses of hosts, without ports',
    'Hosts of stores (DATABASE_URL, CONTENT_DATABASE_URL, EVENTSTORE_URL, S3_ENDPOINT) on a network that nobody else is on, separated by commas: they may be reached without TLS where something is real; unset: those on this machine',
  ),
};

/** Addresses that credentials or prices go over, beside those of vendors. */
const ADDRESSES = [...PAYMENT_BACKENDS, 'STRIPE_API_URL', ...RATE_SOURCES];
const STORES = ['DATABASE_URL', 'CONTENT_DATABASE_URL', 'EVENTSTORE_URL', 'S3_ENDPOINT'];
/** 32 random bytes have 30 different ones, and fewer than this once in 10¹⁵ keys. */
const LEAST_DIFFERENT_BYTES = 16;

/** One sentence for each finding. */
export function unsafeSettings(env: Environment, vendors: readonly ProviderSettingsSpec[]): readonly string[] {
  const real = realIn(env, vendors);
  const always = contradictions(env, vendors);
  if (real === undefined) return always;
  return [...played(env, vendors, real), ...inPlaintext(env, vendors, real), ...weakKey(env), ...always];
}

/** A setting that makes this more than a trial. */
function realIn(env: Environment, vendors: readonly ProviderSettingsSpec[]): string | undefined {
  const sandbox = sandboxOriginIn(env);
  const isElsewhere = (variable: string) => {
    const value = readVariable(env, variable);
    if (value === undefined || value === SANDBOX_KEY || value === SANDBOX_STRIPE_KEY) return false;
    return originOf(value) !== sandbox;
  };
  const ofVendors = vendors.flatMap((vendor) => [`${vendor.env}_API_KEY`, `${vendor.env}_BASE_URL`]);
  const publicly = hostOf(env, 'PUBLIC_BASE_URL');
  return (
    ofVendors.find(isElsewhere) ??
    PAYMENT_BACKENDS.find(isElsewhere) ??
    (publicly !== undefined && isPublic(publicly) ? 'PUBLIC_BASE_URL' : undefined)
  );
}

function played(env: Environment, vendors: readonly ProviderSettingsSpec[], real: string): readonly string[] {
  if (readVariable(env, 'ALLOW_SANDBOX') === 'true') return [];
  const findings: string[] = [];
  const beside = `${real} is real; set what is, or ALLOW_SANDBOX=true to try things out`;
  if (!hasRealPaymentBackend(env))
    findings.push(
      `No back end that takes payments is set (${PAYMENT_BACKENDS.join(', ')}), so they are the sandbox's, whose money is free, while ${beside}.`,
    );
  if (vendors.length > 0 && !hasProviderKey(env, vendors))
    findings.push(`No vendor has a key, so all but those with an address are the sandbox's, while ${beside}.`);
  if (/^(sk|rk)_test_/.test(readVariable(env, 'STRIPE_SECRET_KEY') ?? ''))
    findings.push(`STRIPE_SECRET_KEY is a test key, whose money is free, while ${beside}.`);
  const lnd = readVariable(env, 'LND_REST_URL');
  if (lnd !== undefined && originOf(lnd) !== sandboxOriginIn(env) && !readVariable(env, 'LND_MACAROON'))
    findings.push('LND_MACAROON must be set where LND_REST_URL is.');
  return findings;
}

function inPlaintext(env: Environment, vendors: readonly ProviderSettingsSpec[], real: string): readonly string[] {
  const admitted = readVariable(env, 'PLAINTEXT_STORES')?.toLowerCase().split(',') ?? [];
  const mayBeRead = (host: string) => !isLoopback(host) && !admitted.some((each) => each.trim() === host);
  const stores = STORES.flatMap((variable) => {
    const host = plaintextHostsOf(env, variable).find(mayBeRead);
    if (host === undefined) return [];
    return `${variable} has no TLS, and ${host} is another machine, while ${real} is real: use TLS, or name the host in PLAINTEXT_STORES.`;
  });
  const addresses = [...vendors.map((vendor) => `${vendor.env}_BASE_URL`), ...ADDRESSES].flatMap((variable) => {
    const host = plaintextHostsOf(env, variable).find(isPublic);
    if (host === undefined) return [];
    return `${variable} must begin with https://: what goes to ${host} is read on the way.`;
  });
  return [...stores, ...addresses];
}

/** The hosts of an address without TLS. */
function plaintextHostsOf(env: Environment, variable: string): readonly string[] {
  const value = readVariable(env, variable);
  if (value === undefined) return [];
  const [protocol] = value.split('://', 1);
  switch (protocol) {
    case 'postgres':
    case 'postgresql':
      return some(postgresWithoutTls(value, readVariable(env, 'PGSSLMODE')));
    case 'esdb':
    case 'esdb+discover': {
      const address = parseEventStoreDbAddress(value);
      return typeof address === 'string' || address.usesTls ? [] : address.nodes.map(({ host }) => host);
    }
    default:
      return protocol?.toLowerCase() === 'http' ? some(hostOf(env, variable)) : [];
  }
}

function some(host: string | undefined): readonly string[] {
  return host === undefined ? [] : [host];
}

/** As the client reads it; a path is a socket on this machine. */
function postgresWithoutTls(connectionString: string, mode: string | undefined): string | undefined {
  try {
    const { ssl, host } = new pg.Client({ connectionString });
    const isByMode = mode !== undefined && mode !== 'disable';
    return ssl || isByMode || host.startsWith('/') ? undefined : host.toLowerCase();
  } catch {
    return undefined; // a file that it names is missing: the connection says so
  }
}

/** The first of the ring alone: an old one stays there though it is weak. */
function weakKey(env: Environment): readonly string[] {
  const [key = ''] = readVariable(env, 'MASTER_KEY')?.split(',') ?? [];
  const bytes = [...Buffer.from(key.trim(), 'hex')];
  if (bytes.length === 0) return [];
  const steps = bytes.map((byte, i) => (byte - (bytes[i - 1] ?? 0)) & 0xff);
  const fewest = Math.min(new Set(bytes).size, new Set(steps).size);
  return fewest < LEAST_DIFFERENT_BYTES
    ? [
        'MASTER_KEY is not random: make one with "openssl rand -hex 32", and put it before one that is in use with a comma between them.',
      ]
    : [];
}

function contradictions(env: Environment, vendors: readonly ProviderSettingsSpec[]): readonly string[] {
  const findings: string[] = [];
  const address = readVariable(env, 'PUBLIC_BASE_URL') ?? '';
  const host = hostOf(env, 'PUBLIC_BASE_URL');
  if (address.startsWith('http:') && host !== undefined && isPublic(host) && !host.endsWith('.onion'))
    findings.push(`PUBLIC_BASE_URL must begin with https://: keys that go to ${host} are read on the way.`);
  const [port, audioPort] = [readVariable(env, 'PORT') ?? '3000', readVariable(env, 'AUDIO_PORT')];
  if (port !== '0' && port === audioPort) findings.push('AUDIO_PORT must be another port than PORT.');
  const own = [readVariable(env, 'HOST') ?? '127.0.0.1', '127.0.0.1', 'localhost'].map(
    (each) => `http://${each}:${port}`,
  );
  const ours = [address, ...own].map(originOf).filter((each) => each !== undefined);
  for (const variable of ['SANDBOX_URL', ...vendors.map((vendor) => `${vendor.env}_BASE_URL`), ...ADDRESSES]) {
    const origin = originOf(readVariable(env, variable) ?? '');
    if (origin !== undefined && ours.includes(origin))
      findings.push(`${variable} is the address of the gateway itself, which would ask itself.`);
  }
  return findings;
}

function sandboxOriginIn(env: Environment): string | undefined {
  try {
    return originOf(toSandboxUrl(env));
  } catch {
    return undefined; // a finding of its own
  }
}

function originOf(address: string): string | undefined {
  return /^https?:/.test(address) && URL.canParse(address) ? new URL(address).origin : undefined;
}

function hostOf(env: Environment, variable: string): string | undefined {
  const value = readVariable(env, variable);
  if (value === undefined || !URL.canParse(value)) return undefined;
  return new URL(value).hostname.toLowerCase() || undefined;
}

const OUR_NETWORKS = new BlockList();
for (const [network, prefix] of [
  ...([
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
    ['100.64.0.0', 10],
    ['169.254.0.0', 16],
  ] as const),
])
  OUR_NETWORKS.addSubnet(network, prefix);
OUR_NETWORKS.addSubnet('fc00::', 7, 'ipv6');
OUR_NETWORKS.addSubnet('fe80::', 10, 'ipv6');
const THIS_MACHINE = new BlockList();
THIS_MACHINE.addSubnet('127.0.0.0', 8);
THIS_MACHINE.addAddress('::1', 'ipv6');
THIS_MACHINE.addAddress('0.0.0.0');

function isWithin(networks: BlockList, host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  const family = isIP(address);
  return family !== 0 && networks.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || isWithin(THIS_MACHINE, host);
}

/** Whether others are on the way to it: no address of a private network, and no name that the whole world does not know. */
function isPublic(host: string): boolean {
  if (isLoopback(host) || isWithin(OUR_NETWORKS, host)) return false;
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0) return true;
  return host.includes('.') && !/\.(local|internal|lan|home\.arpa|test|svc|cluster)$/.test(host);
}
