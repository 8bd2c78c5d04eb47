/** Answers as they reach a caller: whole with their status, or as events, which are kept alive and end in an error where the answer breaks off. */
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { ClientProtocol } from './protocols/client-protocol.ts';
import { ProxyError, UNEXPECTED_ERROR } from './proxy-error.ts';

/** Clients, and what is between, give up on a connection that says nothing. */
const PING_INTERVAL_MS = 10_000;

/** What the log may have of a request: nothing that was said. */
export interface RequestLogFields {
  readonly protocol: string;
  model?: string;
  /** Bytes that were encrypted. */
  requestBytes?: number;
  /** Bytes of the answer, as the caller got it. */
  responseBytes: number;
  /** The word for what went wrong. */
  failed?: string;
  /** The gateway's id. */
  requestId?: string | undefined;
}

export function sendProxyError(
  reply: FastifyReply,
  protocol: ClientProtocol,
  logFields: RequestLogFields,
  error: unknown,
): FastifyReply {
  const failure = recordError(error, logFields);
  if (failure.retryAfterSeconds !== undefined) reply.header('retry-after', failure.retryAfterSeconds);
  setRequestId(reply, protocol, logFields);
  // Both makers' clients repeat by themselves what fails with a 5xx, and each answer was perhaps paid.
  if (failure.isFinal) reply.header('x-should-retry', 'false');
  return reply
    .code(failure.status)
    .type('application/json')
    .send(JSON.stringify(protocol.formatError(failure, logFields.requestId)));
}

/** Tells the id by which the gateway's history has a request. */
export function setRequestId(
  reply: FastifyReply,
  { idHeaders }: ClientProtocol,
  { requestId }: RequestLogFields,
): void {
  if (requestId !== undefined) for (const name of idHeaders) reply.header(name, requestId);
}

/**
 * Sends events as they come. What fails before the first one has its own status; what fails later is an event, without the end that
 * a whole answer has.
 * @throws whatever fails before the first event, or before there was silence for long
 */
export async function sendEvents(
  reply: FastifyReply,
  protocol: ClientProtocol,
  logFields: RequestLogFields,
  events: AsyncGenerator<string>,
): Promise<FastifyReply> {
  const stream = withPings(events, protocol.keepAlive);
  const first = await stream.next();
  const all = async function* () {
    try {
      for (let next = first; !next.done; next = await stream.next()) {
        logFields.responseBytes += Buffer.byteLength(next.value);
        yield next.value;
      }
    } catch (error) {
      yield protocol.formatErrorEvent(recordError(error, logFields), logFields.requestId);
    } finally {
      void stream.return(undefined).catch(() => {});
    }
  };
  setRequestId(reply, protocol, logFields);
  return reply
    .headers({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
    .send(Readable.from(all(), { objectMode: false }));
}

function recordError(error: unknown, logFields: RequestLogFields): ProxyError {
  const failure = error instanceof ProxyError ? error : UNEXPECTED_ERROR;
  logFields.failed = failure.logCode;
  logFields.requestId ??= failure.requestId;
  return failure;
}

async function* withPings(events: AsyncGenerator<string>, keepAlive: string): AsyncGenerator<string> {
  try {
    for (let next = events.next(); ; ) {
      const event = await nextOrTimeout(next);
      if (event?.done) return;
      yield event?.value ?? keepAlive;
      if (event) next = events.next();
    }
  } finally {
    // Not awaited: it may wait for what never comes. Whoever left has aborted the request.
    void events.return(undefined).catch(() => {});
  }
}

async function nextOrTimeout<T>(next: Promise<T>): Promise<T | undefined> {
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, PING_INTERVAL_MS, undefined);
  try {
    return await Promise.race([next, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
