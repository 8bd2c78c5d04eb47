/** The connections of a process that serves HTTP: how many there may be, and how slow one may be. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const SWEEP_INTERVAL_MS = 5_000;
/** A body that comes, or an answer that is taken, more slowly than this is not waited for. */
const MIN_BYTES_PER_SECOND = 4 * 1024;
/** Over which the rate of a body is averaged. */
const RATE_WINDOW_MS = 15_000;
/** An answer of which nothing was taken for so long, and for as long as the lowest rate allows for what waits, is dropped. */
const MAX_UNREAD_MS = 60_000;
/** Requests that one connection sends ahead of their answers: more than any client does, and each takes memory and time. */
const MAX_UNANSWERED = 16;
/** How often a process that ends looks whether something still runs. */
const POLL_INTERVAL_MS = 20;
/** Between two alarms of the same kind. */
const REPORT_INTERVAL_MS = 60_000;

/** Of `http.createServer`, for every server that is guarded: a request's head must be there soon, and its body after that. */
export const SERVER_TIMEOUTS = { headersTimeout: 30_000, connectionsCheckingInterval: SWEEP_INTERVAL_MS } as const;

export interface ConnectionLimits {
  /** Connections at a time, of all servers together. */
  readonly max: number;
  /** Of one place. */
  readonly maxPerAddressGroup?: number;
  /** Where a connection comes from; undefined for one that is not counted by its place, such as that of a proxy. */
  toAddressGroup?(address: string | undefined): string | undefined;
  readonly reportError: (problem: string) => void;
  /** Milliseconds of a clock that never goes back. */
  now?(): number;
}

interface Connection {
  readonly server: Server;
  readonly addressGroup: string | undefined;
  request: IncomingMessage | undefined;
  response: ServerResponse | undefined;
  /** Answers to earlier requests that are not finished. */
  unanswered: readonly ServerResponse[];
  /** The body whose rate is measured, from when on, and how much had come by then. */
  measuredRequest: IncomingMessage | undefined;
  measuredAt: number;
  bytesReadBefore: number;
  /** Bytes that had been taken when something waited first, and since when it has. */
  flushedBytes: number;
  unreadSince: number;
}

const NO_RESPONSES: readonly ServerResponse[] = [];

/**
 * Counts and watches connections. A client that holds one for nothing loses it: what has no request is up to the timeouts of
 * Node's server, what sends or reads too slowly is found here, by looking at all of them now and then.
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

  /** How many there are. */
  get count(): number {
    return this.connections.size;
  }

  /** Of a server that has who answers its requests: they do not hear of those that come too many. */
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

  /** Node takes a connection for idle as soon as its answer is written, though the client may not have got it yet. */
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
    // What was sent before its connection was closed is still read to the end of a piece.
    if (!connection || request.socket.destroyed) return false;
    connection.unanswered = listUnanswered(connection);
    if (connection.unanswered.length >= MAX_UNANSWERED) {
      request.socket.destroy();
      this.reportError(`a connection is closed: it has ${MAX_UNANSWERED} requests without an answer, and sends more`);
      return false;
    }
    connection.request = request;
    connection.response = response;
    if (this.isDraining) response.setHeader('connection', 'close');
    return true;
  }

  /** From now on each connection ends with its answer, and the next request takes another. */
  startDraining(): void {
    this.isDraining = true;
  }

  /** Waits until no request is being answered, at most that long. */
  async waitUntilIdle(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    while (this.isResponding && performance.now() < end) await delay(POLL_INTERVAL_MS);
  }

  /** Answers of a connection follow each other: the last one is also the last that ends. */
  private get isResponding(): boolean {
    for (const { response } of this.connections.values()) if (response && !response.closed) return true;
    return false;
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
          ? `connections are refused: there are ${max}`
          : `connections are refused: one address has ${maxPerAddressGroup}`,
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

  /** Looks at all connections, and ends those that are too slow. */
  sweep(): void {
    const now = this.now();
    for (const [socket, connection] of this.connections) {
      if (isUnread(socket, connection, now))
        socket.resetAndDestroy(); // else the system keeps what it has for it, some 4 MB
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

/** Nothing of what is written there was taken. A long piece shows only when all of it has gone, so it has time by its length. */
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

/** Bytes that came and that we have not looked at are no fault of the client's. */
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

/** As Node's server refuses a request that took too long to arrive. */
function rejectSlowRequest(socket: Socket, { server, response }: Connection): void {
  const error = Object.assign(new Error('The body comes too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  if (response?.headersSent || !server.emit('clientError', error, socket)) socket.destroy();
}

/** Before another request: answers are finished in the order of their requests, and few connections have more than one. */
function listUnanswered({ response, unanswered: before }: Connection): readonly ServerResponse[] {
  if (!response || response.writableFinished) return NO_RESPONSES;
  return [...before, response].filter((pending) => !pending.writableFinished);
}
