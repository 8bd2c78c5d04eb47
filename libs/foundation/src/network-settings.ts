/** Settings of where requests come from, and how many connections there may be. */
import { isIP } from 'node:net';
import { integer, list } from './setting-types.ts';

export const NETWORK_SETTINGS = {
  trustedProxies: list(
    'TRUSTED_PROXIES',
    isNetwork,
    'addresses such as 10.0.0.7 or networks such as 10.0.0.0/8',
    'Addresses and networks, such as 10.0.0.0/8, of the proxies in front of the API, separated by commas: what these say in X-Forwarded-For is believed; unset: an address is that of the connection',
  ),
  maxConnections: integer(
    'MAX_CONNECTIONS',
    10_000,
    [1, 1_000_000],
    'Connections of clients to one gateway at a time; further ones are closed at once',
  ),
  maxConnectionsPerAddress: integer(
    'MAX_CONNECTIONS_PER_ADDRESS',
    1_000,
    [1, 1_000_000],
    'Those of one address (of IPv6 one /64) among them; the addresses of TRUSTED_PROXIES are not limited',
  ),
  maxBytesInFlight: integer(
    'MAX_BYTES_IN_FLIGHT',
    512 * 1024 ** 2,
    [64 * 1024 ** 2, Number.MAX_SAFE_INTEGER],
    'Bytes of bodies that one gateway has in memory at a time, until their requests are answered; those beyond are 503. One account has at most half of it, all who have not paid yet a quarter',
  ),
};

/** Never all addresses, nor all in two halves: then any caller could claim any address. */
function isNetwork(value: string): boolean {
  const [address = '', prefix, rest] = value.split('/');
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  if (bits === 0 || address.includes('%') || rest !== undefined) return false;
  return (
    prefix === undefined ||
    (/^[1-9]\d{0,2}$/.test(prefix) && getMinPrefix(address) <= Number(prefix) && Number(prefix) <= bits)
  );
}

/** Of the widest networks that are anybody's own: 10.0.0.0/8, fc00::/7, and 10.0.0.0/8 as IPv6 writes addresses of IPv4. */
function getMinPrefix(address: string): number {
  if (isIP(address) === 4) return 8;
  return new URL(`http://[${address}]`).hostname.startsWith('[::') ? 104 : 7;
}
