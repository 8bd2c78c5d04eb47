/** Network addresses, by which requests and connections are counted. */
import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Networks usually assign a /64 to one customer. */
const GROUPS_OF_A_NETWORK = 4;

/**
 * Returns the address under which a client is counted: an IPv4 address, or the /64 of an IPv6 address. Values that are
 * not addresses, which a proxy may forward from anyone, are counted together.
 */
export function toNetwork(address = ''): string {
  if (isIP(address) === 0) return 'elsewhere';
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const groups = parsed.parts.slice(0, GROUPS_OF_A_NETWORK).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
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
