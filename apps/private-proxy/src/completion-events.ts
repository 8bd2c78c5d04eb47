/** The answers of a chat, whole or not at all: that an answer ends is proven by what it says. */

import { ChatChunkCollector, MAX_EVENT_CHARACTERS, parseSseData, SSE_DONE, SseParser } from '#application/messages';
import { isJsonObject, type JsonObject } from '#kernel';
import { parseJson } from './gateway-client.ts';
import { INCOMPLETE_RESPONSE, ProxyError, parseErrorBody } from './proxy-error.ts';

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
/** For what the gateway still has to say after the answer is complete. */
const DRAIN_TIMEOUT_MS = 5_000;

/**
 * The answer in one piece that a stream comes to.
 * @throws ProxyError when the stream is not whole
 */
export async function collectCompletion(bytes: AsyncIterable<Uint8Array>): Promise<JsonObject> {
  const chat = new ChatChunkCollector();
  for await (const chunk of parseChunks(limitSize(bytes))) {
    try {
      chat.accept(chunk);
    } catch {
      throw createIncompleteResponseError('The answer is no chat');
    }
  }
  return chat.body;
}

/** What the events of a stream carry. @throws ProxyError also where one of them is an error of the enclave's, or none has a choice */
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
      if (!isChoiceList(choices ?? [])) throw createIncompleteResponseError('The answer is no chat');
      isChat ||= choices !== undefined;
      yield chunk;
    }
  }
  if (!isChat) throw createIncompleteResponseError('The answer is no chat');
}

function isChoiceList(choices: unknown): boolean {
  return Array.isArray(choices) && choices.every((choice) => isJsonObject(choice) && isJsonObject(choice.delta ?? {}));
}

/** @throws ProxyError when nobody would want to keep it until its end */
export async function* limitSize(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let remaining = MAX_RESPONSE_BYTES;
  for await (const chunk of bytes) {
    remaining -= chunk.length;
    if (remaining < 0) throw new ProxyError(502, 'The answer is too long', { code: 'answer_too_long', isFinal: true });
    yield chunk;
  }
}

/** An event of a streamed answer. */
export interface CompletionEvent {
  /** Without its end. */
  readonly text: string;
  /** What it carries, unless it is a comment or `[DONE]`. */
  readonly chunk?: JsonObject;
}

/**
 * The events of a streamed answer, several at a time. The last one is `[DONE]`.
 * @throws ProxyError when there is none, or one that cannot be read, after the events that came
 */
export async function* parseEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly CompletionEvent[]> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const source = bytes[Symbol.asyncIterator]();
  let isDone = false;
  try {
    while (!isDone) {
      const { done, value } = await source.next();
      if (done) throw createIncompleteResponseError('The answer ended before it was complete');
      const events = parser.read(decoder.decode(value, { stream: true }));
      if (parser.pendingCharacters > MAX_EVENT_CHARACTERS)
        throw createIncompleteResponseError('An event of the answer is too long');
      const end = events.findIndex((event) => parseSseData(event) === SSE_DONE);
      isDone = end >= 0;
      if (events.length > 0) yield (isDone ? events.slice(0, end + 1) : events).map(parseEvent);
    }
    await drainRest(source);
  } finally {
    // Not awaited: it may wait for bytes that never come, and whoever left has aborted the request.
    void source.return?.().catch(() => {});
  }
}

function parseEvent(text: string): CompletionEvent {
  const data = parseSseData(text);
  if (data === undefined || data === SSE_DONE) return { text };
  const chunk = parseJson(data);
  if (!isJsonObject(chunk)) throw createIncompleteResponseError('The answer has an event that is not JSON');
  return { text, chunk };
}

/** Lets the gateway end in order. The answer is complete whatever comes. */
async function drainRest(source: AsyncIterator<Uint8Array>): Promise<void> {
  const { promise: timeout, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, DRAIN_TIMEOUT_MS);
  const drained = (async () => {
    while (!(await source.next()).done);
  })().catch(() => {});
  await Promise.race([drained, timeout]);
  clearTimeout(timer);
}

function createIncompleteResponseError(message: string): ProxyError {
  return new ProxyError(502, message, { code: INCOMPLETE_RESPONSE, isFinal: true });
}
