/** Settings for requests without an account: which address they come from, and how many may come. */
import { isIP } from 'node:net';
import { integer, list } from './setting-kinds.ts';

export const DOORS = {
  trustedProxies: list(
    'TRUSTED_PROXIES',
    isNetwork,
    'addresses such as 10.0.0.7 or networks such as 10.0.0.0/8',
    'Addresses and networks, such as 10.0.0.0/8, of the proxies in front of the API, separated by commas: what these say in X-Forwarded-For is believed; unset: an address is that of the connection',
  ),
  challengesPerMinute: integer(
    'CHALLENGES_PER_MINUTE',
    60,
    [1, 1_000_000],
    'Requests without a credential that one address (of IPv6 one /64) may make in a minute to what can be paid for by the request, on all gateways together',
  ),
  challengesPerMinuteInAll: integer(
    'CHALLENGES_PER_MINUTE_IN_ALL',
    1_200,
    [1, 1_000_000],
    'Payments for single requests that are asked for in a minute at most, of everybody: each is an invoice of the Lightning node',
  ),
};

/** Never all addresses: then any caller could claim any address. */
function isNetwork(word: string): boolean {
  const [address = '', prefix, more] = word.split('/');
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  if (bits === 0 || address.includes('%') || more !== undefined) return false;
  return prefix === undefined || (/^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= bits);
}
