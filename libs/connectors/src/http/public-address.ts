import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** IPv6 addresses outside this range are not hosts of the public internet, but some are `unicast` for the library. */
const GLOBAL_V6 = ipaddr.parseCIDR('2000::/3');
/** Names that public name servers do not resolve (RFC 6761 and similar), and names of local networks. */
const SPECIAL_NAME =
  /^[^.]+\.?$|(^|\.)(localhost|local|internal|home\.arpa|test|example|invalid|onion|lan|corp|home)\.?$/i;
const DNS_TIMEOUT_MS = 2_000;
const DNS_ATTEMPTS = 2;

/**
 * Whether an address can be a host of the public internet. Multicast and reserved ranges are excluded, and IANA's
 * special-purpose ranges that are not globally reachable.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || address.includes('%')) return false; // the library also accepts forms such as 0x7f000001
  const parsed = ipaddr.parse(address);
  return parsed.range() === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(GLOBAL_V6));
}

/** Resolves a hostname to its IP addresses. */
export type ResolveHostname = (hostname: string) => Promise<readonly string[]>;

/**
 * Queries the name servers directly. The system's `getaddrinfo` would occupy threads that the entire process shares,
 * and a third party can make its name resolve slowly on purpose.
 */
export const resolveByDns: ResolveHostname = async (hostname) => {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_ATTEMPTS });
  const results = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
};

/** The host is not on the public internet, so the gateway does not connect to it for a third party. */
export class PrivateAddressError extends Error {
  override readonly name = 'PrivateAddressError';
}

/**
 * Returns the addresses of a host, all of them public. Connect to these addresses only: resolving the name again may
 * return different ones.
 * @throws PrivateAddressError if the hostname or any of its addresses is not public; Error if it has no address
 */
export async function resolvePublicAddresses(hostname: string, resolve: ResolveHostname): Promise<readonly string[]> {
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  if (!isIP(literal) && SPECIAL_NAME.test(hostname)) throw new PrivateAddressError('the hostname is not public');
  const addresses = isIP(literal) ? [literal] : await resolve(hostname);
  if (addresses.length === 0) throw new Error('the hostname cannot be resolved');
  if (!addresses.every(isPublicAddress)) throw new PrivateAddressError('the address is not public');
  return addresses;
}
