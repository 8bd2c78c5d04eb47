/** Limits the number of HTTP connections of a process, and ends connections that are too slow. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const SWEEP_INTERVAL_MS = 5_000;
/**
 * Minimum rate at which a client must send a body. It also determines how much longer than `MAX_UNREAD_MS` a client may
 * read nothing of a response.
 */
const MIN_BYTES_PER_SECOND = 4 * 1024;
/** The rate of a body is averaged over at least this time. */
const RATE_WINDOW_MS = 15_000;
/** A client may read nothing for this time, plus the time for the waiting bytes at `MIN_BYTES_PER_SECOND`. */
const MAX_UNREAD_MS = 60_000;
/**
 * Maximum number of requests that a connection may send before their responses. No ordinary client sends that many
 * before it reads a response, and each waiting request takes memory and time.
 */
const MAX_UNANSWERED = 16;
/** How often a process that drains checks whether responses are still running. */
const POLL_INTERVAL_MS = 20;
/** Minimum interval between two reports of the same problem. */
const REPORT_INTERVAL_MS = 60_000;

/**
 * Time for a client to read the last bytes of an interrupted response; many drop what they have not read by its end.
 */
const INTERRUPTION_DELAY_MS = 100;

/** Options of `http.createServer` for every guarded server. They limit the time for the head of a request. */
export const SERVER_TIMEOUTS = { headersTimeout: 30_000, connectionsCheckingInterval: SWEEP_INTERVAL_MS } as const;

export interface ConnectionLimits {
  /** Maximum number of connections of all servers together. */
  readonly max: number;
  /** Maximum number of connections of one address group; `max` by default. */
  readonly maxPerAddressGroup?: number;
  /** Returns the group of an address, such as its network; undefined for one without a limit, such as a proxy's. */
  toAddressGroup?(address: string | undefined): string | undefined;
  readonly reportError: (problem: string) => void;
  /** Milliseconds of a monotonic clock. */
  now?(): number;
}

interface Connection {
  readonly server: Server;
  readonly addressGroup: string | undefined;
  request: IncomingMessage | undefined;
  response: ServerResponse | undefined;
  /** Unfinished responses to earlier requests. */
  unanswered: readonly ServerResponse[];
  /** The request whose body is being measured. */
  measuredRequest: IncomingMessage | undefined;
  /** When the measurement started. */
  measuredAt: number;
  /** Bytes that the connection had received by `measuredAt`. */
  bytesReadBefore: number;
  /** Number of bytes sent so far, as of the last sweep; -1 if no bytes were waiting to be sent. */
  flushedBytes: number;
  /** Time of the sweep that last found `flushedBytes` changed. */
  unreadSince: number;
}

const NO_RESPONSES: readonly ServerResponse[] = [];

/**
 * Counts connections and closes those of clients that occupy them without progress. The timeouts of Node's server
 * handle connections without a request. A regular sweep finds those that send too slowly or do not read.
 */
export class ConnectionGuard {
  private readonly connections = new Map<Socket, Connection>();
  private readonly countByAddressGroup = new Map<string, number>();
  private readonly reportedAt = new Map<string, number>();
  private readonly sweepTimer: NodeJS.Timeout;
  private readonly now: () => number;
  private isDraining = false;

  constructor(private readonly limits: ConnectionLimits) {
    this.now = limits.now?.bind(limits) ?? (() => performance.now());
    this.sweepTimer = setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  get count(): number {
    return this.connections.size;
  }

  /** Guards a server that already has request listeners. The listeners do not receive requests beyond the limits. */
  guard(server: Server): void {
    server.on('connection', (socket: Socket) => this.accept(server, socket));
    const listeners = server.listeners('request') as RequestListener[];
    server.removeAllListeners('request');
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (this.tryAcceptRequest(request, response))
        for (const listener of listeners) listener.call(server, request, response);
    });
    const closeIdle = server.closeIdleConnections.bind(server);
    server.closeIdleConnections = () => this.closeIdleExceptResponding(closeIdle);
  }

  /**
   * Closes idle connections, except those whose client has not received the complete response yet. Node considers a
   * connection idle as soon as its response is written.
   */
  private closeIdleExceptResponding(close: () => void): void {
    const respondingSockets = [...this.connections]
      .filter(([, { response }]) => response && !response.closed)
      .map(([socket]) => socket);
    for (const socket of respondingSockets) socket.destroy = () => socket;
    try {
      close();
    } finally {
      for (const socket of respondingSockets) Reflect.deleteProperty(socket, 'destroy');
    }
  }

  private tryAcceptRequest(request: IncomingMessage, response: ServerResponse): boolean {
    const connection = this.connections.get(request.socket);
    // Node still parses the rest of a chunk that arrived before its connection was closed.
    if (!connection || request.socket.destroyed) return false;
    connection.unanswered = listUnanswered(connection);
    if (connection.unanswered.length >= MAX_UNANSWERED) {
      request.socket.destroy();
      this.reportError(`connection closed: it sent more than ${MAX_UNANSWERED} requests before their responses`);
      return false;
    }
    connection.request = request;
    connection.response = response;
    if (this.isDraining) response.setHeader('connection', 'close');
    return true;
  }

  /**
   * From now on every connection is closed after the response to its next request, so that the client sends later
   * requests on another connection.
   */
  startDraining(): void {
    this.isDraining = true;
  }

  /** Waits until no response is running, for at most this time. */
  async waitUntilIdle(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    while (this.countResponding() > 0 && performance.now() < end) await delay(POLL_INTERVAL_MS);
  }

  /**
   * Returns how many connections have an unfinished response. Checks only the last response of each, because responses
   * of a connection end in order.
   */
  countResponding(): number {
    return [...this.connections.values()].filter(({ response }) => response && !response.closed).length;
  }

  close(): void {
    clearInterval(this.sweepTimer);
  }

  private accept(server: Server, socket: Socket): void {
    const { max, maxPerAddressGroup = max, toAddressGroup } = this.limits;
    const addressGroup = toAddressGroup?.(socket.remoteAddress);
    const groupCount = addressGroup === undefined ? 0 : (this.countByAddressGroup.get(addressGroup) ?? 0);
    if (this.connections.size >= max || groupCount >= maxPerAddressGroup) {
      socket.destroy();
      this.reportError(
        this.connections.size >= max
          ? `connections rejected: there are ${max}`
          : `connections rejected: one address or network has ${maxPerAddressGroup}`,
      );
      return;
    }
    if (addressGroup !== undefined) this.countByAddressGroup.set(addressGroup, groupCount + 1);
    const unmeasured = {
      measuredRequest: undefined,
      measuredAt: 0,
      bytesReadBefore: 0,
      flushedBytes: -1,
      unreadSince: 0,
    };
    this.connections.set(socket, {
      server,
      addressGroup,
      request: undefined,
      response: undefined,
      unanswered: NO_RESPONSES,
      ...unmeasured,
    });
    socket.once('close', () => this.remove(socket));
  }

  private remove(socket: Socket): void {
    const { addressGroup } = this.connections.get(socket) ?? {};
    this.connections.delete(socket);
    if (addressGroup === undefined) return;
    const remaining = (this.countByAddressGroup.get(addressGroup) ?? 1) - 1;
    if (remaining === 0) this.countByAddressGroup.delete(addressGroup);
    else this.countByAddressGroup.set(addressGroup, remaining);
  }

  /** Checks all connections, and closes those that are too slow. */
  sweep(): void {
    const now = this.now();
    for (const [socket, connection] of this.connections) {
      if (isUnread(socket, connection, now))
        socket.resetAndDestroy(); // otherwise the kernel retains its send buffer, about 4 MB
      else if (isTooSlow(socket, connection, now)) rejectSlowRequest(socket, connection);
    }
  }

  private reportError(problem: string): void {
    const now = this.now();
    if (now - (this.reportedAt.get(problem) ?? Number.NEGATIVE_INFINITY) < REPORT_INTERVAL_MS) return;
    this.reportedAt.set(problem, now);
    this.limits.reportError(problem);
  }
}

/**
 * Returns whether the client has read nothing for too long. A long chunk counts as read only when all of it was sent,
 * so the time depends on the number of waiting bytes.
 */
function isUnread(socket: Socket, connection: Connection, now: number): boolean {
  const waiting = socket.writableLength;
  const flushedBytes = waiting === 0 ? -1 : socket.bytesWritten - waiting;
  if (flushedBytes !== connection.flushedBytes) {
    connection.flushedBytes = flushedBytes;
    connection.unreadSince = now;
    return false;
  }
  return waiting > 0 && now - connection.unreadSince > MAX_UNREAD_MS + (waiting / MIN_BYTES_PER_SECOND) * 1_000;
}

/** Returns whether the body arrives too slowly. The rate is not measured while bytes wait for this process. */
function isTooSlow(socket: Socket, connection: Connection, now: number): boolean {
  const { request, measuredRequest, measuredAt, bytesReadBefore } = connection;
  if (!request || request.complete || request.destroyed) return false;
  const elapsedMs = now - measuredAt;
  const isMeasured = measuredRequest === request && request.readableLength === 0;
  if (isMeasured && elapsedMs < RATE_WINDOW_MS) return false;
  const read = socket.bytesRead;
  connection.measuredRequest = request;
  connection.measuredAt = now;
  connection.bytesReadBefore = read;
  return isMeasured && read - bytesReadBefore < (MIN_BYTES_PER_SECOND * elapsedMs) / 1_000;
}

/**
 * Emits `clientError` if the response has not started, as Node's server does after its request timeout. Closes the
 * connection if the response has started or no listener handles the error.
 */
function rejectSlowRequest(socket: Socket, { server, response }: Connection): void {
  const error = Object.assign(new Error('The body arrives too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  if (response?.headersSent || !server.emit('clientError', error, socket)) socket.destroy();
}

/**
 * Called when a request arrives: returns the unfinished responses to earlier requests of the connection. Responses
 * finish in the order of their requests, and few connections have more than one unfinished response.
 */
function listUnanswered({ response, unanswered: before }: Connection): readonly ServerResponse[] {
  if (!response || response.writableFinished) return NO_RESPONSES;
  return [...before, response].filter((pending) => !pending.writableFinished);
}

/**
 * Sends the last bytes of a chunked response, and closes the connection without the end of the response, so that the
 * client notices that it is incomplete (RFC 9112, 8).
 */
export function interruptAfter(response: ServerResponse, bytes: Uint8Array | string): void {
  const close = () => void response.socket?.destroySoon();
  response.write(bytes, () => void setTimeout(close, INTERRUPTION_DELAY_MS));
}
