/** Hosts and origins of addresses in settings: whether they are this host, the sandbox, or public. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { SANDBOX_SETTINGS, toSandboxUrl } from './external-service-settings.ts';
import { type Environment, parseSetting, readVariable, SettingError } from './setting-types.ts';

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
  return ignoreInvalid(() => String(parseSetting(SANDBOX_SETTINGS.port, env)));
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

const PRIVATE_RANGES = ['private', 'carrierGradeNat', 'linkLocal', 'uniqueLocal'];
/** A connection to an unspecified address, such as 0.0.0.0, reaches this host. */
const LOOPBACK_RANGES = ['loopback', 'unspecified'];

/** Returns the name of the range of an address; undefined for a hostname. */
function getAddressRange(host: string): string | undefined {
  const address = host.replace(/^\[|\]$/g, '');
  return isIP(address) === 0 ? undefined : ipaddr.process(address).range();
}

export function isLoopback(host: string): boolean {
  const range = getAddressRange(host);
  return range === undefined ? /^(.*\.)?localhost$/.test(host) : LOOPBACK_RANGES.includes(range);
}

/**
 * Returns whether the traffic to a host may leave private networks, because the host has neither a private address nor
 * a local name.
 */
export function isPublic(host: string): boolean {
  if (isLoopback(host)) return false;
  const range = getAddressRange(host);
  if (range !== undefined) return !PRIVATE_RANGES.includes(range);
  return host.includes('.') && !/\.(local|internal|lan|home\.arpa|test|svc|cluster)$/.test(host);
}
