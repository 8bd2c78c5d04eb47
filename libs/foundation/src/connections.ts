/** The connections of a process that serves HTTP: how many there may be, and how slow one may be. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const SWEEP_EVERY_MS = 5_000;
/** A body that comes, or an answer that is taken, more slowly than this is not waited for. */
const LOWEST_BYTES_PER_SECOND = 4 * 1024;
/** Over which the rate of a body is averaged. */
const RATE_OVER_MS = 15_000;
/** An answer of which nothing was taken for so long, and for as long as the lowest rate allows for what waits, is dropped. */
const UNREAD_MS = 60_000;
/** Requests that one connection sends ahead of their answers: more than any client does, and each takes memory and time. */
const MAX_UNANSWERED = 16;
/** How often a process that ends looks whether something still runs. */
const LOOK_EVERY_MS = 20;
/** Between two alarms of the same kind. */
const ALARM_EVERY_MS = 60_000;

/** Of `http.createServer`, for every server that is guarded: a request's head must be there soon, and its body after that. */
export const SERVER_TIMEOUTS = { headersTimeout: 30_000, connectionsCheckingInterval: SWEEP_EVERY_MS } as const;

export interface ConnectionLimits {
  /** Connections at a time, of all servers together. */
  readonly max: number;
  /** Of one place. */
  readonly maxPerPlace?: number;
  /** Where a connection comes from; undefined for one that is not counted by its place, such as that of a proxy. */
  placeOf?(address: string | undefined): string | undefined;
  readonly alarm: (problem: string) => void;
  /** Milliseconds of a clock that never goes back. */
  now?(): number;
}

interface Connection {
  readonly server: Server;
  readonly place: string | undefined;
  request: IncomingMessage | undefined;
  response: ServerResponse | undefined;
  /** Answers to earlier requests that are not finished. */
  unanswered: readonly ServerResponse[];
  /** The body whose rate is measured, from when on, and how much had come by then. */
  measured: IncomingMessage | undefined;
  measuredFrom: number;
  readBefore: number;
  /** Bytes that had been taken when something waited first, and since when it has. */
  taken: number;
  unreadSince: number;
}

const NONE: readonly ServerResponse[] = [];

/**
 * Counts and watches connections. A client that holds one for nothing loses it: what has no request is up to the timeouts of
 * Node's server, what sends or reads too slowly is found here, by looking at all of them now and then.
 */
export class ConnectionGuard {
  private readonly open = new Map<Socket, Connection>();
  private readonly byPlace = new Map<string, number>();
  private readonly alarmedAt = new Map<string, number>();
  private readonly sweeping: NodeJS.Timeout;
  private readonly now: () => number;
  private isLeaving = false;

  constructor(private readonly limits: ConnectionLimits) {
    this.now = limits.now?.bind(limits) ?? (() => performance.now());
    this.sweeping = setInterval(() => this.sweep(), SWEEP_EVERY_MS).unref();
  }

  /** How many there are. */
  get count(): number {
    return this.open.size;
  }

  /** Of a server that has who answers its requests: they do not hear of those that come too many. */
  guard(server: Server): void {
    server.on('connection', (socket: Socket) => this.accept(server, socket));
    const answerers = server.listeners('request') as RequestListener[];
    server.removeAllListeners('request');
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (this.admits(request, response)) for (const answer of answerers) answer.call(server, request, response);
    });
    const closeIdle = server.closeIdleConnections.bind(server);
    server.closeIdleConnections = () => this.exceptAnswering(closeIdle);
  }

  /** Node takes a connection for idle as soon as its answer is written, though the client may not have got it yet. */
  private exceptAnswering(close: () => void): void {
    const answering = [...this.open]
      .filter(([, { response }]) => response && !response.closed)
      .map(([socket]) => socket);
    for (const socket of answering) socket.destroy = () => socket;
    try {
      close();
    } finally {
      for (const socket of answering) Reflect.deleteProperty(socket, 'destroy');
    }
  }

  private admits(request: IncomingMessage, response: ServerResponse): boolean {
    const connection = this.open.get(request.socket);
    // What was sent before its connection was closed is still read to the end of a piece.
    if (!connection || request.socket.destroyed) return false;
    connection.unanswered = unanswered(connection);
    if (connection.unanswered.length >= MAX_UNANSWERED) {
      request.socket.destroy();
      this.alarm(`a connection is closed: it has ${MAX_UNANSWERED} requests without an answer, and sends more`);
      return false;
    }
    connection.request = request;
    connection.response = response;
    if (this.isLeaving) response.setHeader('connection', 'close');
    return true;
  }

  /** From now on each connection ends with its answer, and the next request takes another. */
  leave(): void {
    this.isLeaving = true;
  }

  /** Waits until no request is being answered, at most that long. */
  async idle(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    while (this.isAnswering && performance.now() < end) await delay(LOOK_EVERY_MS);
  }

  /** Answers of a connection follow each other: the last one is also the last that ends. */
  private get isAnswering(): boolean {
    for (const { response } of this.open.values()) if (response && !response.closed) return true;
    return false;
  }

  close(): void {
    clearInterval(this.sweeping);
  }

  private accept(server: Server, socket: Socket): void {
    const { max, maxPerPlace = max, placeOf } = this.limits;
    const place = placeOf?.(socket.remoteAddress);
    const ofPlace = place === undefined ? 0 : (this.byPlace.get(place) ?? 0);
    if (this.open.size >= max || ofPlace >= maxPerPlace) {
      socket.destroy();
      this.alarm(
        this.open.size >= max
          ? `connections are refused: there are ${max}`
          : `connections are refused: one address has ${maxPerPlace}`,
      );
      return;
    }
    if (place !== undefined) this.byPlace.set(place, ofPlace + 1);
    const unmeasured = { measured: undefined, measuredFrom: 0, readBefore: 0, taken: -1, unreadSince: 0 };
    this.open.set(socket, { server, place, request: undefined, response: undefined, unanswered: NONE, ...unmeasured });
    socket.once('close', () => this.forget(socket));
  }

  private forget(socket: Socket): void {
    const { place } = this.open.get(socket) ?? {};
    this.open.delete(socket);
    if (place === undefined) return;
    const left = (this.byPlace.get(place) ?? 1) - 1;
    if (left === 0) this.byPlace.delete(place);
    else this.byPlace.set(place, left);
  }

  /** Looks at all connections, and ends those that are too slow. */
  sweep(): void {
    const now = this.now();
    for (const [socket, connection] of this.open) {
      if (isUnread(socket, connection, now))
        socket.resetAndDestroy(); // else the system keeps what it has for it, some 4 MB
      else if (comesTooSlowly(socket, connection, now)) refuse(socket, connection);
    }
  }

  private alarm(problem: string): void {
    const now = this.now();
    if (now - (this.alarmedAt.get(problem) ?? Number.NEGATIVE_INFINITY) < ALARM_EVERY_MS) return;
    this.alarmedAt.set(problem, now);
    this.limits.alarm(problem);
  }
}

/** Nothing of what is written there was taken. A long piece shows only when all of it has gone, so it has time by its length. */
function isUnread(socket: Socket, connection: Connection, now: number): boolean {
  const waiting = socket.writableLength;
  const taken = waiting === 0 ? -1 : socket.bytesWritten - waiting;
  if (taken !== connection.taken) {
    connection.taken = taken;
    connection.unreadSince = now;
    return false;
  }
  return waiting > 0 && now - connection.unreadSince > UNREAD_MS + (waiting / LOWEST_BYTES_PER_SECOND) * 1_000;
}

/** Bytes that came and that we have not looked at are no fault of the client's. */
function comesTooSlowly(socket: Socket, connection: Connection, now: number): boolean {
  const { request, measured, measuredFrom, readBefore } = connection;
  if (!request || request.complete || request.destroyed) return false;
  const passed = now - measuredFrom;
  const isMeasured = measured === request && request.readableLength === 0;
  if (isMeasured && passed < RATE_OVER_MS) return false;
  const read = socket.bytesRead;
  connection.measured = request;
  connection.measuredFrom = now;
  connection.readBefore = read;
  return isMeasured && read - readBefore < (LOWEST_BYTES_PER_SECOND * passed) / 1_000;
}

/** As Node's server refuses a request that took too long to arrive. */
function refuse(socket: Socket, { server, response }: Connection): void {
  const error = Object.assign(new Error('The body comes too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  if (response?.headersSent || !server.emit('clientError', error, socket)) socket.destroy();
}

/** Before another request: answers are finished in the order of their requests, and few connections have more than one. */
function unanswered({ response, unanswered: before }: Connection): readonly ServerResponse[] {
  if (!response || response.writableFinished) return NONE;
  return [...before, response].filter((each) => !each.writableFinished);
}
