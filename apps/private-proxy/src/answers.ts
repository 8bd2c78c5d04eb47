/** The answers of a chat, whole or not at all: that an answer ends is proven by what it says. */
import { DONE, isObject, SseReader, sseData, type Thing } from '#application/messages';
import { Failure } from './failure.ts';
import { jsonIn, wholeOf } from './gateway.ts';

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_EVENT_CHARACTERS = 32 * 1024 * 1024;
/** For what the gateway still has to say after the answer is complete. */
const REST_MS = 5_000;

/** @throws Failure when it is not the whole of a JSON object */
export async function wholeAnswer(
  pieces: AsyncIterable<Uint8Array>,
): Promise<{ readonly bytes: Buffer; readonly json: Thing }> {
  const bytes = await wholeOf(pieces, MAX_ANSWER_BYTES);
  const json = jsonIn(bytes);
  if (!isObject(json)) throw broken('The answer is not whole');
  return { bytes, json };
}

/** An event of a streamed answer. */
export interface AnswerEvent {
  /** Without its end. */
  readonly text: string;
  /** What it carries, unless it is a comment or `[DONE]`. */
  readonly chunk?: Thing;
}

/**
 * The events of a streamed answer, several at a time. The last one is `[DONE]`.
 * @throws Failure when there is none, or one that cannot be read, after the events that came
 */
export async function* eventsOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<readonly AnswerEvent[]> {
  const reader = new SseReader();
  const decoder = new TextDecoder();
  const source = pieces[Symbol.asyncIterator]();
  let isDone = false;
  try {
    while (!isDone) {
      const { done, value } = await source.next();
      if (done) throw broken('The answer ended before it was complete');
      const events = reader.read(decoder.decode(value, { stream: true }));
      if (reader.rest.length > MAX_EVENT_CHARACTERS) throw broken('An event of the answer is too long');
      const end = events.findIndex((event) => sseData(event) === DONE);
      isDone = end >= 0;
      if (events.length > 0) yield (isDone ? events.slice(0, end + 1) : events).map(eventIn);
    }
    await rest(source);
  } finally {
    // Not awaited: it may wait for bytes that never come, and whoever left has aborted the request.
    void source.return?.().catch(() => {});
  }
}

function eventIn(text: string): AnswerEvent {
  const data = sseData(text);
  if (data === undefined || data === DONE) return { text };
  const chunk = jsonIn(data);
  if (!isObject(chunk)) throw broken('The answer has an event that is not JSON');
  return { text, chunk };
}

/** Lets the gateway end in order. The answer is complete whatever comes. */
async function rest(source: AsyncIterator<Uint8Array>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, REST_MS);
  const drained = (async () => {
    while (!(await source.next()).done);
  })().catch(() => {});
  await Promise.race([drained, late]);
  clearTimeout(timer);
}

function broken(message: string): Failure {
  return new Failure(502, message, { code: 'answer_broken', final: true });
}
