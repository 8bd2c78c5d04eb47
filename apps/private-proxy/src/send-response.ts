/**
 * Sends error responses and event streams to callers. An idle stream gets keep-alive events. An interrupted stream ends
 * with an error event.
 */

import type { OutgoingHttpHeaders } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { FastifyReply } from 'fastify';
import { interruptAfter } from '#foundation/program';
import { withTimeout } from '#kernel';
import { nodeTimers } from '#runtime';
import type { ClientProtocol } from './protocols/client-protocol.ts';
import { ProxyError, UNEXPECTED_ERROR } from './proxy-error.ts';

/**
 * Maximum time without an event; after it, a keep-alive event is sent, because clients and network devices close idle
 * connections.
 */
const PING_INTERVAL_MS = 10_000;

/** What is logged about a request. It must not contain any content of a chat. */
export interface RequestLogFields {
  readonly protocol: string;
  model?: string;
  /** Size of the chat before encryption. */
  requestBytes?: number;
  /**
   * Bytes of the completion that were handed to the connection, including keep-alive events but not an error event. 0
   * for any other response.
   */
  responseBytes: number;
  /** Code of the error. */
  failed?: string;
  /** The gateway's id of the request. */
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
  // OpenAI's and Anthropic's clients retry after a 5xx, unless this header forbids it.
  if (failure.isFinal) reply.header('x-should-retry', 'false');
  return reply
    .code(failure.status)
    .type('application/json')
    .send(JSON.stringify(protocol.formatError(failure, logFields.requestId)));
}

/** Sets the headers with the id that the request has in the gateway's history. */
export function setRequestId(
  reply: FastifyReply,
  { idHeaders }: ClientProtocol,
  { requestId }: RequestLogFields,
): void {
  if (requestId !== undefined) for (const name of idHeaders) reply.header(name, requestId);
}

/**
 * Sends events as they arrive. If an error occurs after the first event, an error event replaces the remaining events,
 * so the stream has no `[DONE]` or `message_stop`. Returns when the last event was handed to the connection.
 * @throws any error before the first event, so that it gets its own status. A first event that takes longer than
 * PING_INTERVAL_MS is preceded by a keep-alive event, which counts as the first.
 */
export async function sendEvents(
  reply: FastifyReply,
  protocol: ClientProtocol,
  logFields: RequestLogFields,
  events: AsyncGenerator<string>,
): Promise<FastifyReply> {
  const stream = withPings(events, protocol.keepAlive);
  const first = await stream.next();
  let errorEvent: string | undefined;
  const all = async function* () {
    try {
      for (let next = first; !next.done; next = await stream.next()) {
        logFields.responseBytes += Buffer.byteLength(next.value);
        yield next.value;
      }
    } catch (error) {
      errorEvent = protocol.formatErrorEvent(recordError(error, logFields), logFields.requestId);
    } finally {
      void stream.return(undefined).catch(() => {}); // the stream has ended, or its error was recorded above
    }
  };
  setRequestId(reply, protocol, logFields);
  reply.headers({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }).hijack();
  const { raw } = reply;
  raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders);
  try {
    await pipeline(all, raw, { end: false });
  } catch {
    return reply; // the caller disconnected
  }
  if (errorEvent !== undefined && protocol.closesIncompleteStreams) interruptAfter(raw, errorEvent);
  else raw.end(errorEvent);
  return reply;
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
      const event = await withTimeout(nodeTimers, PING_INTERVAL_MS, next, () => undefined);
      if (event?.done) return;
      yield event?.value ?? keepAlive;
      if (event) next = events.next();
    }
  } finally {
    // Not awaited: `return` waits for a pending `next`, which may never resolve. When a caller disconnects, `Exchanges`
    // aborts the request.
    void events.return(undefined).catch(() => {});
  }
}
