/** Connections to hosts of third parties, limited to addresses that were checked before. */
import { isIP, type LookupFunction } from 'node:net';
import { Agent } from 'undici';

/** Creates an agent that connects to these addresses for any hostname. TLS and the request still use the hostname. */
export function createPinnedAgent(addresses: readonly string[], connectTimeoutMs: number): Agent {
  const resolved = addresses.map((address) => ({ address, family: isIP(address) }));
  const lookup: LookupFunction = (_hostname, { all }, done) => {
    const [first] = resolved;
    if (all) done(null, resolved);
    else if (first) done(null, first.address, first.family);
    else done(new Error('no address to connect to'), '');
  };
  return new Agent({ connections: 1, pipelining: 0, connect: { lookup, timeout: connectTimeoutMs } });
}
