/**
 * Parses and formats the server-sent events of all protocols:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { type JsonObject } from '#kernel';
import { UpstreamError } from '../errors.ts';

/** The data of the event that ends a stream in OpenAI's protocol. */
export const SSE_DONE = '[DONE]';

const EVENT_END = '\n\n';
/** Some providers end lines with CR LF, as HTTP does. */
const ANY_EVENT_END = /\r?\n\r?\n/;
const LINE_END = /\r?\n/;
const DATA = 'data:';
const LATER_DATA = `\n${DATA}`;

/** Formats one event. @param data one line, such as JSON */
export function formatSseEvent(data: string, type?: string): string {
  return type === undefined ? `data: ${data}${EVENT_END}` : `event: ${type}\ndata: ${data}${EVENT_END}`;
}

/** Formats a comment, which clients ignore: it only shows that the stream is alive. */
export function formatSseComment(text: string): string {
  return `: ${text}${EVENT_END}`;
}

/** Returns the data of an event; undefined if it has none, like a comment. @param event without its end */
export function parseSseData(event: string): string | undefined {
  const line = event.startsWith(DATA) ? 0 : event.indexOf(LATER_DATA) + 1;
  if (line === 0 && !event.startsWith(DATA)) return undefined;
  if (event.indexOf('\n', line) < 0) return event.slice(line + DATA.length).trim();
  const lines = event
    .split(LINE_END)
    .flatMap((line) => (line.startsWith(DATA) ? [line.slice(DATA.length).trim()] : []));
  return lines.join('\n');
}

/** Returns the data of complete events. */
export function parseSseEvents(events: Uint8Array): readonly string[] {
  const text = Buffer.from(events.buffer, events.byteOffset, events.byteLength).toString('utf8');
  const payloads: string[] = [];
  for (const event of text.split(EVENT_END)) {
    const data = parseSseData(event);
    if (data !== undefined) payloads.push(data);
  }
  return payloads;
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
/** Up to this many characters of an event end may be at the end of the previous chunk. */
const END_BEFORE = 3;

/**
 * Splits a body into events, wherever its chunks end. Each character is scanned a few times, however long an event is.
 */
export class SseParser {
  /** The chunks of the incomplete event. */
  private pending: string[] = [];
  /** Length of the incomplete event. Callers compare it with `MAX_EVENT_CHARACTERS`. */
  pendingCharacters = 0;
  /** The last characters of the incomplete event. */
  private last = '';

  /** Returns the events, without their ends, that a chunk completes. */
  read(chunk: string): readonly string[] {
    const scanned = this.last + chunk;
    if (!scanned.includes(EVENT_END) && !(scanned.includes('\r') && ANY_EVENT_END.test(scanned))) {
      this.retain(chunk, scanned);
      return [];
    }
    const text = this.pending.length === 0 ? chunk : this.pending.join('') + chunk;
    const events = text.includes('\r') ? text.split(ANY_EVENT_END) : text.split(EVENT_END);
    const rest = events.pop() as string;
    this.pending = [];
    this.pendingCharacters = 0;
    this.retain(rest, rest);
    return events;
  }

  /** The incomplete event so far. */
  get rest(): string {
    return this.pending.join('');
  }

  private retain(chunk: string, scanned: string): void {
    this.last = scanned.slice(-END_BEFORE);
    if (chunk === '') return;
    this.pending.push(chunk);
    this.pendingCharacters += chunk.length;
  }
}
