/** Network addresses, by which requests and connections are counted. */
import { BlockList, isIP } from 'node:net';

const GROUPS = 8;
/** Networks usually assign a /64 to one customer. */
const GROUPS_OF_A_NETWORK = 4;

/**
 * Returns the address under which a client is counted: an IPv4 address, or the /64 of an IPv6 address. Values that are
 * not addresses, which a proxy may forward from anyone, are counted together.
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

/** Returns the eight groups of an IPv6 address, including those that `::` omits. */
function expandGroups(address: string): readonly string[] {
  // URL normalises the address: lower case, no embedded IPv4, and at most one `::`.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = [], tail] = canonical.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  if (tail === undefined) return head;
  return [...head, ...Array(GROUPS - head.length - tail.length).fill('0'), ...tail];
}

/**
 * Returns a function that maps the address of a connection to the network for which the connection is counted. The
 * function returns undefined for a trusted proxy, which forwards many clients.
 * @param proxies addresses and networks in CIDR notation
 */
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
