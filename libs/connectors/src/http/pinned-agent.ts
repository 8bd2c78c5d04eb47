/** Connections to addresses of strangers: what is dialled is what was checked. */
import { isIP, type LookupFunction } from 'node:net';
import { Agent } from 'undici';

/** Dials one of these addresses, whatever name is asked for; the name stays that of TLS and of the request. */
export function createPinnedAgent(addresses: readonly string[], connectTimeoutMs: number): Agent {
  const resolved = addresses.map((address) => ({ address, family: isIP(address) }));
  const lookup: LookupFunction = (_hostname, { all }, done) => {
    const [first] = resolved;
    if (all) done(null, resolved);
    else if (first) done(null, first.address, first.family);
    else done(new Error('there is no address'), '');
  };
  return new Agent({ connections: 1, pipelining: 0, connect: { lookup, timeout: connectTimeoutMs } });
}
