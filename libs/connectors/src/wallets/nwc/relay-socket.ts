/** WebSockets to relays that strangers name: dialled are only addresses that were checked, and what they send is bounded. */
import type { ClientRequest } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import WebSocket, { type ClientOptions } from 'ws';
import { isPublicAddress, PrivateAddressError, resolvePublicAddresses } from '../../http/public-address.ts';
import { isAllowedRelay, type RelayConnectOptions } from './relay-connect.ts';

const MAX_MESSAGE_BYTES = 64 * 1024;
/** In how many pieces a message may come. */
const MAX_FRAGMENTS = 64;
/** Of one connection, pings with them: an info event, a handful of answers and what relays say about themselves. */
const MAX_FRAMES = 200;
const MAX_BYTES = 1024 * 1024;
const HANDSHAKE_TIMEOUT_MS = 5_000;
/** Answers before the answer (100 to 199): as many as one likes may come, and each is parsed. */
const MAX_INTERIM_RESPONSES = 5;

/**
 * A socket that gives at most so many messages, and then ends. What a name resolves to is looked up and checked once for
 * each connection, and that is what is dialled: between a check and another lookup the answer could change.
 */
export class RelaySocket {
  private readonly socket: WebSocket;
  private frames = 0;
  private bytes = 0;
  private isEnded = false;

  /**
   * @param handlers `onMessage` gets what the relay says, `onEnd` is called once, at the end or when there is no connection
   * @throws PrivateAddressError, Error
   */
  constructor(
    url: string,
    connectOptions: RelayConnectOptions,
    private readonly handlers: { onOpen(): void; onMessage(text: string): void; onEnd(error?: Error): void },
  ) {
    let problem: Error | undefined;
    this.socket = new WebSocket(url, createSocketOptions(url, connectOptions));
    this.socket.on('open', () => {
      if (!this.isEnded) handlers.onOpen();
    });
    this.socket.on('message', (data: Buffer, isBinary) => {
      if (this.acceptFrame(data) && !isBinary) handlers.onMessage(data.toString());
    });
    this.socket.on('ping', (data) => this.acceptFrame(data));
    this.socket.on('pong', (data) => this.acceptFrame(data));
    this.socket.on('error', (error) => {
      problem = error; // `close` follows
    });
    this.socket.on('close', () => this.end(problem));
  }

  get isOpen(): boolean {
    return !this.isEnded && this.socket.readyState === WebSocket.OPEN;
  }

  send(text: string): void {
    if (this.isOpen) this.socket.send(text, () => {}); // where it fails, `close` follows
  }

  /** At once: who waits for the other side to agree keeps the connection as long as it likes. */
  close(): void {
    this.end();
  }

  private end(error?: Error): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.socket.terminate();
    this.handlers.onEnd(error);
  }

  /** What has come already is given to us even after the end. */
  private acceptFrame({ length }: Buffer): boolean {
    if (this.isEnded) return false;
    this.frames++;
    this.bytes += length;
    const isWithinLimits = this.frames <= MAX_FRAMES && this.bytes <= MAX_BYTES;
    if (!isWithinLimits) this.end();
    return isWithinLimits;
  }
}

function finishRequest(request: ClientRequest): void {
  let interim = 0;
  request.on('information', () => {
    if (++interim > MAX_INTERIM_RESPONSES) request.destroy(new Error('the relay answers without end'));
  });
  request.end();
}

function createSocketOptions(url: string, { resolve, allowedRelays }: RelayConnectOptions): ClientOptions {
  const limits: ClientOptions = {
    maxPayload: MAX_MESSAGE_BYTES,
    maxFragments: MAX_FRAGMENTS,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    perMessageDeflate: false,
    followRedirects: false,
    finishRequest,
  };
  if (isAllowedRelay(url, allowedRelays)) return limits;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'wss:') throw new PrivateAddressError('a relay is reached by wss:// only');
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(literal) && !isPublicAddress(literal)) throw new PrivateAddressError('its address is not a public one'); // never looked up
  const lookup: LookupFunction = (_, options, done) => {
    resolvePublicAddresses(hostname, resolve).then(
      (addresses) => {
        const resolved = addresses.map((address) => ({ address, family: isIP(address) }));
        if (options.all) done(null, resolved);
        else done(null, resolved[0]?.address ?? '', resolved[0]?.family);
      },
      (error: Error) => done(error, ''),
    );
  };
  return { ...limits, lookup } as ClientOptions; // what it does not list goes to `net.connect`
}
