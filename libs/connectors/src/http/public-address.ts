import { Resolver } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

/** IPv6 addresses outside this range are not hosts of the public internet. */
const GLOBAL_V6 = createBlockList([['2000::', 3]], 'ipv6');
const RESERVED_V6 = createBlockList(
  [
    ['2001::', 23], // Teredo, ORCHID and other protocols
    ['2001:db8::', 32],
    ['2002::', 16], // 6to4 routes to IPv4 addresses
    ['3fff::', 20],
  ],
  'ipv6',
);
const RESERVED_V4 = createBlockList(
  [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['224.0.0.0', 4],
    ['240.0.0.0', 4],
  ],
  'ipv4',
);
/** Names that public name servers do not resolve (RFC 6761 and similar), and names of local networks. */
const SPECIAL_NAME =
  /^[^.]+\.?$|(^|\.)(localhost|local|internal|home\.arpa|test|example|invalid|onion|lan|corp|home)\.?$/i;
const DNS_TIMEOUT_MS = 2_000;
const DNS_ATTEMPTS = 2;

function createBlockList(subnets: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, family);
  return list;
}

/**
 * Whether an address can be a host of the public internet. Multicast and reserved ranges are excluded, and IANA's
 * special-purpose ranges that are not globally reachable.
 */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !RESERVED_V4.check(address, 'ipv4');
    case 6:
      return !address.includes('%') && GLOBAL_V6.check(address, 'ipv6') && !RESERVED_V6.check(address, 'ipv6');
    default:
      return false;
  }
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
