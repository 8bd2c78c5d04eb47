/** WebSockets to relays that third parties name. Addresses are checked before connecting, and messages are limited. */
import type { ClientRequest } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import WebSocket, { type ClientOptions } from 'ws';
import { isPublicAddress, PrivateAddressError, resolvePublicAddresses } from '../../http/public-address.ts';
import { isAllowedRelay, type RelayConnectOptions } from './relay-connect.ts';

const MAX_MESSAGE_BYTES = 64 * 1024;
/** Maximum number of fragments of a message. */
const MAX_FRAGMENTS = 64;
/**
 * Maximum number of messages, pings and pongs of one connection. A session needs an info event and a few responses and
 * notices.
 */
const MAX_FRAMES = 200;
const MAX_BYTES = 1024 * 1024;
const HANDSHAKE_TIMEOUT_MS = 5_000;
/** Maximum number of informational responses (status 100 to 199). HTTP does not limit them, and each one is parsed. */
const MAX_INTERIM_RESPONSES = 5;

/**
 * A socket that closes itself when its limits are exceeded. Unless the relay is allowed, its hostname is resolved once
 * for each connection, and only the checked addresses are used. A second lookup after the check could have another
 * result (DNS rebinding).
 */
export class RelaySocket {
  private readonly socket: WebSocket;
  private frames = 0;
  private bytes = 0;
  private isEnded = false;

  /**
   * @param handlers `onMessage` gets each text message; `onEnd` is called once, even if the connection fails
   * @throws PrivateAddressError for an address that is not allowed; Error for an invalid one
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
    if (this.isOpen) this.socket.send(text, () => {}); // after a failure, `close` follows
  }

  /** Closes without a closing handshake, which the other side could delay. */
  close(): void {
    this.end();
  }

  private end(error?: Error): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.socket.terminate();
    this.handlers.onEnd(error);
  }

  /**
   * Counts a message, ping or pong. Returns false if a limit is exceeded, and after the end, because `ws` still emits
   * messages that it has already received.
   */
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
    if (++interim > MAX_INTERIM_RESPONSES) request.destroy(new Error('too many informational responses'));
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
  if (protocol !== 'wss:') throw new PrivateAddressError('relays require wss://');
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  // An address in the URL is not resolved, so `lookup` does not check it.
  if (isIP(literal) && !isPublicAddress(literal)) throw new PrivateAddressError('the address is not public');
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
  return { ...limits, lookup } as ClientOptions; // other options are passed to `net.connect`
}
