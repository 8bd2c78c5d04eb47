import { Resolver } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

/** Beyond it, addresses of IPv6 are no hosts of the public internet. */
const GLOBAL_V6 = createBlockList([['2000::', 3]], 'ipv6');
const RESERVED_V6 = createBlockList(
  [
    ['2001::', 23], // Teredo, ORCHID and other protocols
    ['2001:db8::', 32],
    ['2002::', 16], // 6to4 leads to addresses of IPv4
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
/** Names that no public name server knows (RFC 6761 and its like), and those of one's own network. */
const SPECIAL_NAME =
  /^[^.]+\.?$|(^|\.)(localhost|local|internal|home\.arpa|test|example|invalid|onion|lan|corp|home)\.?$/i;
const DNS_TIMEOUT_MS = 2_000;
const DNS_ATTEMPTS = 2;

function createBlockList(subnets: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, family);
  return list;
}

/** Whether an address is a host of the public internet (IANA's special-purpose registries are what is not). */
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

/** What a name resolves to. */
export type ResolveHostname = (hostname: string) => Promise<readonly string[]>;

/**
 * Asks the name servers. Not the system's `getaddrinfo`: that occupies threads which the whole process shares, and a name
 * of a stranger may be slow on purpose.
 */
export const resolveByDns: ResolveHostname = async (hostname) => {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_ATTEMPTS });
  const results = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
};

/** It leads where we do not go for strangers. */
export class PrivateAddressError extends Error {
  override readonly name = 'PrivateAddressError';
}

/**
 * The addresses of a host, all of which are public: those to dial, without asking again.
 * @throws PrivateAddressError when one of them is not, Error when there are none
 */
export async function resolvePublicAddresses(hostname: string, resolve: ResolveHostname): Promise<readonly string[]> {
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  if (!isIP(literal) && SPECIAL_NAME.test(hostname)) throw new PrivateAddressError('its name is not a public one');
  const addresses = isIP(literal) ? [literal] : await resolve(hostname);
  if (addresses.length === 0) throw new Error('its name cannot be resolved');
  if (!addresses.every(isPublicAddress)) throw new PrivateAddressError('its address is not a public one');
  return addresses;
}
