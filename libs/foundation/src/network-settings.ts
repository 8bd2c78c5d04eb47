/** Settings of client addresses, connections and request bodies. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { integer, list } from './setting-types.ts';

export const NETWORK_SETTINGS = {
  trustedProxies: list(
    'TRUSTED_PROXIES',
    z.string().refine(isNetwork),
    'addresses such as 10.0.0.7 or networks such as 10.0.0.0/8',
    'Addresses and networks, such as 10.0.0.0/8, of the proxies in front of the API, separated by commas; their X-Forwarded-For header is trusted; unset: the client address is that of the connection',
  ),
  maxConnections: integer(
    'MAX_CONNECTIONS',
    10_000,
    [1, 1_000_000],
    'Maximum number of client connections per gateway; further ones are closed at once',
  ),
  maxConnectionsPerAddress: integer(
    'MAX_CONNECTIONS_PER_ADDRESS',
    1_000,
    [1, 1_000_000],
    'Maximum number of client connections per IP address (IPv6: /64 network) and gateway; does not apply to TRUSTED_PROXIES',
  ),
  maxBytesInFlight: integer(
    'MAX_BYTES_IN_FLIGHT',
    512 * 1024 ** 2,
    [64 * 1024 ** 2, Number.MAX_SAFE_INTEGER],
    'Maximum number of bytes of request bodies in the memory of a gateway until their responses are sent; beyond it requests get 503; one payer may use half of it, an account or IP address that has never paid 1/8, and all of these together 1/4; uncompressed bodies with a content-length up to 16 KiB do not count',
  ),
};

/**
 * Returns whether the value is an address or a network. Networks wider than the private ones are invalid, because every
 * caller in a trusted network can claim any address.
 */
function isNetwork(value: string): boolean {
  const [address = '', prefix, rest] = value.split('/');
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  if (bits === 0 || address.includes('%') || rest !== undefined) return false;
  return (
    prefix === undefined ||
    (/^[1-9]\d{0,2}$/.test(prefix) && getMinPrefix(address) <= Number(prefix) && Number(prefix) <= bits)
  );
}

/**
 * Returns the prefix length of the widest private network: 10.0.0.0/8, fc00::/7, or 10.0.0.0/8 as an IPv4-mapped IPv6
 * address.
 */
function getMinPrefix(address: string): number {
  if (isIP(address) === 4) return 8;
  return new URL(`http://[${address}]`).hostname.startsWith('[::') ? 104 : 7;
}
