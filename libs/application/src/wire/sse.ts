/**
 * Parses and formats the server-sent events of all protocols:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { type JsonObject } from '#kernel';
import { UpstreamError } from '../errors.ts';

/** The data of the event that ends a stream in OpenAI's protocol. */
export const SSE_DONE = '[DONE]';

const EVENT_END = '\n\n';

/** Formats one event. @param data one line, such as JSON */
export function formatSseEvent(data: string, type?: string): string {
  return type === undefined ? `data: ${data}${EVENT_END}` : `event: ${type}\ndata: ${data}${EVENT_END}`;
}

/** Formats a comment, which clients ignore: it only shows that the stream is alive. */
export function formatSseComment(text: string): string {
  return `: ${text}${EVENT_END}`;
}

/** Returns the data of complete events. */
export function parseSseEvents(events: Uint8Array): readonly string[] {
  const text = Buffer.from(events.buffer, events.byteOffset, events.byteLength).toString('utf8');
  return new SseParser().read(text);
}

/** Splits complete events after the first one. */
export function splitFirstEvent(events: Uint8Array): readonly [first: Uint8Array, rest: Uint8Array] {
  const end = Buffer.from(events.buffer, events.byteOffset, events.byteLength).indexOf(EVENT_END) + EVENT_END.length;
  return [events.subarray(0, end), events.subarray(end)];
}

/** Parses the data of an event. @throws UpstreamError if it is not JSON */
export function parseEventJson(data: string): JsonObject {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The provider sent an event that is not JSON', { cause });
  }
}

/**
 * Maximum length of an event; readers abort the stream beyond it. The longest events of any protocol repeat a complete
 * response.
 */
export const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024;

/** Parses the data of the events of a body, wherever its chunks end. */
export class SseParser {
  private eventData: string[] = [];
  private hasTooLongEvent = false;
  /** Without `onError`, for which the library would create an error with its stack trace for each line that is no field. */
  private readonly parser: EventSourceParser = createParser({
    maxBufferSize: MAX_EVENT_CHARACTERS,
    onEvent: ({ data }) => this.eventData.push(data.trim()),
  });

  /** Whether an event was longer than `MAX_EVENT_CHARACTERS` before this chunk. The rest of the body cannot be read. */
  get isTooLong(): boolean {
    return this.hasTooLongEvent;
  }

  /** Returns the data of the events that a chunk completes. */
  read(chunk: string): readonly string[] {
    try {
      this.parser.feed(chunk);
    } catch {
      this.hasTooLongEvent = true; // thrown for no other reason
    }
    const { eventData } = this;
    this.eventData = [];
    return eventData;
  }

  /** Returns the data of the last event, if the body ends without the blank line after it. */
  end(): readonly string[] {
    return this.read(EVENT_END);
  }
}
