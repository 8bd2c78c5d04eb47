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
  const plain = (address ?? '').replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
  switch (isIP(plain)) {
    case 4:
      return plain;
    case 6:
      return `${groupsOf(plain).slice(0, GROUPS_OF_A_NETWORK).join(':')}::/64`;
    default:
      return 'elsewhere';
  }
}

/** All of them, also those that are left out as `::`. */
function groupsOf(address: string): readonly string[] {
  // Written in one way: lower case, without dots, nothing but one run of zeros left out.
  const written = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = [], tail] = written.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  if (tail === undefined) return head;
  return [...head, ...Array(GROUPS - head.length - tail.length).fill('0'), ...tail];
}

/** Says what place a connection comes from; nothing for one of `proxies`, which come for many. @param proxies addresses and networks */
export function createClientAddressResolver(
  proxies: readonly string[],
): (address: string | undefined) => string | undefined {
  const known = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    const family = familyOf(address);
    if (bits === undefined) known.addAddress(address, family);
    else known.addSubnet(address, Number(bits), family);
  }
  return (address = '') => (known.check(address, familyOf(address)) ? undefined : toNetwork(address));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
