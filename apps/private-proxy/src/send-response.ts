/** Answers as they reach a caller: whole with their status, or as events, which are kept alive and end in an error where the answer breaks off. */
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { ClientProtocol } from './protocols/client-protocol.ts';
import { ProxyError, UNEXPECTED_ERROR } from './proxy-error.ts';

/** Clients, and what is between, give up on a connection that says nothing. */
const SILENCE_MS = 10_000;

/** What the log may have of a request: nothing that was said. */
export interface RequestLogFields {
  readonly face: string;
  model?: string;
  /** Bytes that were encrypted. */
  asked?: number;
  /** Bytes of the answer, as the caller got it. */
  answered: number;
  /** The word for what went wrong. */
  failed?: string;
  /** The gateway's id. */
  requestId?: string | undefined;
}

export function sendProxyError(
  reply: FastifyReply,
  face: ClientProtocol,
  note: RequestLogFields,
  error: unknown,
): FastifyReply {
  const failure = failureOf(error, note);
  if (failure.retryAfterSeconds !== undefined) reply.header('retry-after', failure.retryAfterSeconds);
  setRequestId(reply, face, note);
  // Both makers' clients repeat by themselves what fails with a 5xx, and each answer was perhaps paid.
  if (failure.final) reply.header('x-should-retry', 'false');
  return reply
    .code(failure.status)
    .type('application/json')
    .send(JSON.stringify(face.error(failure, note.requestId)));
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
  face: ClientProtocol,
  note: RequestLogFields,
  events: AsyncGenerator<string>,
): Promise<FastifyReply> {
  const kept = keptAlive(events, face.keepAlive);
  const first = await kept.next();
  const all = async function* () {
    try {
      for (let next = first; !next.done; next = await kept.next()) {
        note.answered += Buffer.byteLength(next.value);
        yield next.value;
      }
    } catch (error) {
      yield face.errorEvent(failureOf(error, note), note.requestId);
    } finally {
      void kept.return(undefined).catch(() => {});
    }
  };
  setRequestId(reply, face, note);
  return reply
    .headers({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
    .send(Readable.from(all(), { objectMode: false }));
}

function failureOf(error: unknown, note: RequestLogFields): ProxyError {
  const failure = error instanceof ProxyError ? error : UNEXPECTED_ERROR;
  note.failed = failure.logged;
  note.requestId ??= failure.requestId;
  return failure;
}

async function* keptAlive(events: AsyncGenerator<string>, keepAlive: string): AsyncGenerator<string> {
  try {
    for (let next = events.next(); ; ) {
      const event = await orSilence(next);
      if (event?.done) return;
      yield event?.value ?? keepAlive;
      if (event) next = events.next();
    }
  } finally {
    // Not awaited: it may wait for what never comes. Whoever left has aborted the request.
    void events.return(undefined).catch(() => {});
  }
}

async function orSilence<T>(next: Promise<T>): Promise<T | undefined> {
  const { promise: silence, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, SILENCE_MS, undefined);
  try {
    return await Promise.race([next, silence]);
  } finally {
    clearTimeout(timer);
  }
}
