/** Whose a request is that shows no credential: all that is known is where it comes from. */
import { BlockList, isIP } from 'node:net';

const GROUPS = 8;
/** One customer of a provider has them all: a /64. */
const GROUPS_OF_A_NETWORK = 4;

/**
 * What counts as one place: an address, or of IPv6 its /64. What is no address, as a proxy may forward it from anybody, is
 * one place together.
 */
export function toNetwork(address: string | undefined): string {
  const normalized = (address ?? '').replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
  switch (isIP(normalized)) {
    case 4:
      return normalized;
    case 6:
      return `${expandGroups(normalized).slice(0, GROUPS_OF_A_NETWORK).join(':')}::/64`;
    default:
      return 'elsewhere';
  }
}

/** All of them, also those that are left out as `::`. */
function expandGroups(address: string): readonly string[] {
  // Written in one way: lower case, without dots, nothing but one run of zeros left out.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = [], tail] = canonical.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  if (tail === undefined) return head;
  return [...head, ...Array(GROUPS - head.length - tail.length).fill('0'), ...tail];
}

/** Says what place a connection comes from; nothing for one of `proxies`, which come for many. @param proxies addresses and networks */
export function createClientAddressResolver(
  proxies: readonly string[],
): (address: string | undefined) => string | undefined {
  const trustedProxies = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    const family = getIpFamily(address);
    if (bits === undefined) trustedProxies.addAddress(address, family);
    else trustedProxies.addSubnet(address, Number(bits), family);
  }
  return (address = '') => (trustedProxies.check(address, getIpFamily(address)) ? undefined : toNetwork(address));
}

function getIpFamily(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
