/** WebSockets to relays that strangers name: dialled are only addresses that were checked, and what they send is bounded. */
import { isIP, type LookupFunction } from 'node:net';
import WebSocket, { type ClientOptions } from 'ws';
import { isPublic, PrivateAddress, publicAddresses } from '../../http/public-address.ts';
import { type Dialling, isAdmitted } from './dialling.ts';

const MAX_MESSAGE_BYTES = 64 * 1024;
/** Of one connection: an info event, a handful of answers and what relays say about themselves. */
const MAX_MESSAGES = 500;
const HANDSHAKE_TIMEOUT_MS = 5_000;

export type RelaySockets = new (url: string | URL) => WebSocket;

/**
 * A class of sockets as browsers have it, for one dialling. What a name resolves to is looked up and checked once for
 * each connection, and that is what is dialled: between a check and another lookup the answer could change.
 */
export function socketsFor(dialling: Dialling, failed: (error: Error) => void = () => {}): RelaySockets {
  return class RelaySocket extends WebSocket {
    private messages = 0;

    constructor(url: string | URL) {
      super(url, optionsFor(String(url), dialling));
      this.on('message', () => {
        if (++this.messages > MAX_MESSAGES) this.terminate();
      });
      this.on('error', failed); // `close` follows, which its owner waits for
    }
  };
}

function optionsFor(url: string, { resolve, admitted }: Dialling): ClientOptions {
  const bounds: ClientOptions = {
    maxPayload: MAX_MESSAGE_BYTES,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    perMessageDeflate: false,
    followRedirects: false,
  };
  if (isAdmitted(url, admitted)) return bounds;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'wss:') throw new PrivateAddress('a relay is reached by wss:// only');
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(literal) && !isPublic(literal)) throw new PrivateAddress('its address is not a public one'); // never looked up
  const lookup: LookupFunction = (_, options, done) => {
    publicAddresses(hostname, resolve).then(
      (addresses) => {
        const found = addresses.map((address) => ({ address, family: isIP(address) }));
        if (options.all) done(null, found);
        else done(null, found[0]?.address ?? '', found[0]?.family);
      },
      (error: Error) => done(error, ''),
    );
  };
  return { ...bounds, lookup } as ClientOptions; // what it does not list goes to `net.connect`
}
