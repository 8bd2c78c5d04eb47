/**
 * Reads completions from the decrypted event stream of an enclave. The end of the connection does not show that a
 * completion is complete: only its `[DONE]` does.
 */

import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { ChatChunkCollector, MAX_EVENT_CHARACTERS, SSE_DONE } from '#application/messages';
import { isJsonObject, type JsonObject, withTimeout } from '#kernel';
import { nodeTimers } from '#runtime';
import { parseJson } from './gateway-client.ts';
import { INCOMPLETE_RESPONSE, ProxyError, parseErrorBody } from './proxy-error.ts';

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
/** How long the rest of a response is read after its `[DONE]`. */
const DRAIN_TIMEOUT_MS = 5_000;

/**
 * Collects a stream into a non-streaming completion.
 * @throws ProxyError if the stream is incomplete, too long, not a chat completion, or contains an error
 */
export async function collectCompletion(bytes: AsyncIterable<Uint8Array>): Promise<JsonObject> {
  const chat = new ChatChunkCollector();
  for await (const chunk of parseChunks(limitSize(bytes))) {
    try {
      chat.accept(chunk);
    } catch {
      throw createIncompleteResponseError('The response is not a chat completion');
    }
  }
  return chat.body;
}

/**
 * Yields the JSON chunks of a stream.
 * @throws ProxyError as `parseEvents` does, and if a chunk contains an error of the enclave or invalid choices, or no
 * chunk has choices
 */
export async function* parseChunks(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<JsonObject> {
  let isChat = false;
  for await (const events of parseEvents(bytes)) {
    for (const { chunk } of events) {
      if (!chunk) continue;
      const { error, choices } = chunk;
      if (error)
        throw new ProxyError(502, parseErrorBody(chunk)?.message ?? 'The enclave failed', {
          code: 'enclave_error',
          isFinal: true,
        });
      if (!isChoiceList(choices ?? [])) throw createIncompleteResponseError('The response is not a chat completion');
      isChat ||= choices !== undefined;
      yield chunk;
    }
  }
  if (!isChat) throw createIncompleteResponseError('The response is not a chat completion');
}

function isChoiceList(choices: unknown): boolean {
  return Array.isArray(choices) && choices.every((choice) => isJsonObject(choice) && isJsonObject(choice.delta ?? {}));
}

/** Limits a response that is collected in memory. @throws ProxyError if it is longer than MAX_RESPONSE_BYTES */
export async function* limitSize(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let remaining = MAX_RESPONSE_BYTES;
  for await (const chunk of bytes) {
    remaining -= chunk.length;
    if (remaining < 0)
      throw new ProxyError(502, 'The response is too long', { code: 'answer_too_long', isFinal: true });
    yield chunk;
  }
}

/** An SSE event of a streamed completion. */
export interface CompletionEvent {
  /** Without the blank line at its end. */
  readonly text: string;
  /** The JSON data; undefined for `[DONE]` and for events without data, such as comments. */
  readonly chunk?: JsonObject;
}

/**
 * Yields the events of a streamed completion in batches, as they arrive. The last event is `[DONE]`.
 * @throws ProxyError after earlier batches, if an event is invalid or too long, or the stream ends without `[DONE]`
 */
export async function* parseEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly CompletionEvent[]> {
  const received: ReceivedEvent[] = [];
  // Without `onError`, for which the library would create an error with its stack trace for each line that is no field.
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARACTERS,
    onEvent: (event) => received.push(event),
    onComment: (comment) => received.push({ comment }),
  });
  const decoder = new TextDecoder();
  const source = bytes[Symbol.asyncIterator]();
  let isDone = false;
  try {
    while (!isDone) {
      const { done, value } = await source.next();
      if (done) throw createIncompleteResponseError('The response ended before it was complete');
      try {
        parser.feed(decoder.decode(value, { stream: true }));
      } catch {
        throw createIncompleteResponseError('An event of the response is too long'); // in an earlier chunk
      }
      const events = received.splice(0);
      const end = events.findIndex(({ data }) => data === SSE_DONE);
      isDone = end >= 0;
      if (events.length > 0) yield (isDone ? events.slice(0, end + 1) : events).map(parseEvent);
    }
    await drainRest(source);
  } finally {
    // Not awaited: it could wait for bytes that never arrive. A disconnected caller has aborted the request anyway.
    void source.return?.().catch(() => {});
  }
}

/** An event, or a comment, which only shows that the stream is alive. */
type ReceivedEvent = Partial<EventSourceMessage> & { readonly comment?: string };

function parseEvent(event: ReceivedEvent): CompletionEvent {
  const { data } = event;
  const text = formatEvent(event);
  if (data === undefined || data === SSE_DONE) return { text };
  const chunk = parseJson(data);
  if (!isJsonObject(chunk)) throw createIncompleteResponseError('The response has an event that is not a JSON object');
  return { text, chunk };
}

function formatEvent({ comment, event, id, data = '' }: ReceivedEvent): string {
  if (comment !== undefined) return `: ${comment}`;
  const fields = Object.entries({ event, id }).flatMap(([name, value]) => (value ? `${name}: ${value}` : []));
  return [...fields, ...data.split('\n').map((line) => `data: ${line}`)].join('\n');
}

/**
 * Reads until the end or the timeout, so that the gateway can finish normally. Errors are ignored, since the completion
 * is complete.
 */
async function drainRest(source: AsyncIterator<Uint8Array>): Promise<void> {
  const drained = (async () => {
    while (!(await source.next()).done);
  })().catch(() => {}); // the completion is complete
  await withTimeout(nodeTimers, DRAIN_TIMEOUT_MS, drained, () => {});
}

function createIncompleteResponseError(message: string): ProxyError {
  return new ProxyError(502, message, { code: INCOMPLETE_RESPONSE, isFinal: true });
}
