/** Hosts and origins of addresses in settings: whether they are this host, the sandbox, or public. */
import { BlockList, isIP } from 'node:net';
import { SANDBOX_SETTINGS, toSandboxUrl } from './external-service-settings.ts';
import { type Environment, readVariable, SettingError } from './setting-types.ts';

/**
 * Returns whether a setting names the sandbox: its URL, or its port on this host under any name of this host. The
 * setting is an address, a list of addresses, or a connection string with relays.
 */
export function namesSandbox(env: Environment, variable: string): boolean {
  const value = readVariable(env, variable);
  if (value === undefined) return false;
  const sandbox = getSandboxOrigin(env);
  return listOrigins(value).some((origin) => origin === sandbox || isLocalSandbox(env, origin));
}

function isLocalSandbox(env: Environment, origin: string): boolean {
  const { hostname, port } = new URL(origin);
  return isLoopback(hostname) && port === getSandboxPort(env);
}

/** Returns the origins of the addresses in a setting. Those of relays (ws, wss) are returned as http and https. */
function listOrigins(value: string): readonly string[] {
  const addresses = /^nostr\+?walletconnect:/i.test(value)
    ? new URLSearchParams(value.slice(value.indexOf('?') + 1)).getAll('relay')
    : value.split(',');
  return addresses.flatMap((address) => parseOrigin(address.trim().replace(/^ws(?=s?:)/i, 'http')) ?? []);
}

function getSandboxOrigin(env: Environment): string | undefined {
  return ignoreInvalid(() => parseOrigin(toSandboxUrl(env)));
}

function getSandboxPort(env: Environment): string | undefined {
  return ignoreInvalid(() => String(SANDBOX_SETTINGS.port.read(env)));
}

/** Returns undefined for an invalid setting, which is reported when it is read. */
function ignoreInvalid<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof SettingError) return undefined;
    throw error;
  }
}

export function parseOrigin(address: string): string | undefined {
  return /^https?:/i.test(address) && URL.canParse(address) ? new URL(address).origin : undefined;
}

export function readHost(env: Environment, variable: string): string | undefined {
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

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || isWithin(LOOPBACK_ADDRESSES, host);
}

/**
 * Returns whether the traffic to a host may leave private networks, because the host has neither a private address nor
 * a local name.
 */
export function isPublic(host: string): boolean {
  if (isLoopback(host) || isWithin(PRIVATE_NETWORKS, host)) return false;
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0) return true;
  return host.includes('.') && !/\.(local|internal|lan|home\.arpa|test|svc|cluster)$/.test(host);
}
