/**
 * Server-sent events, as all protocols of answers have them, read and written nowhere else:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { type JsonObject } from '#kernel';
import { UpstreamError } from '../errors.ts';

/** The data of the event that ends a stream of OpenAI's. */
export const SSE_DONE = '[DONE]';

const EVENT_END = '\n\n';
/** Some vendors end lines with CR LF, as HTTP does. */
const ANY_EVENT_END = /\r?\n\r?\n/;
const LINE_END = /\r?\n/;
const DATA = 'data:';
const LATER_DATA = `\n${DATA}`;

/** One event. @param data one line, such as JSON */
export function formatSseEvent(data: string, type?: string): string {
  return type === undefined ? `data: ${data}${EVENT_END}` : `event: ${type}\ndata: ${data}${EVENT_END}`;
}

/** An event that clients ignore: it only shows that the stream is alive. */
export function formatSseComment(text: string): string {
  return `: ${text}${EVENT_END}`;
}

/** The data of an event; undefined where it has none, as a comment. @param event without its end */
export function parseSseData(event: string): string | undefined {
  const line = event.startsWith(DATA) ? 0 : event.indexOf(LATER_DATA) + 1;
  if (line === 0 && !event.startsWith(DATA)) return undefined;
  if (event.indexOf('\n', line) < 0) return event.slice(line + DATA.length).trim();
  const lines = event
    .split(LINE_END)
    .flatMap((line) => (line.startsWith(DATA) ? [line.slice(DATA.length).trim()] : []));
  return lines.join('\n');
}

/** The data of events that have come whole. */
export function parseSseEvents(events: Uint8Array): readonly string[] {
  const text = Buffer.from(events.buffer, events.byteOffset, events.byteLength).toString('utf8');
  const payloads: string[] = [];
  for (const event of text.split(EVENT_END)) {
    const data = parseSseData(event);
    if (data !== undefined) payloads.push(data);
  }
  return payloads;
}

/** What an event of a chat or a response carries. @throws UpstreamError when it cannot be read */
export function parseEventJson(data: string): JsonObject {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The upstream sent an event that is not JSON', { cause });
  }
}

/** A longer event is none that any protocol has: the longest tell a whole answer again. Who reads events breaks off there. */
export const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024;
/** An end may begin with so many characters of the piece before. */
const END_BEFORE = 3;

/** Takes a body apart into events, wherever its pieces end. Each character is looked at a few times, however long an event is. */
export class SseParser {
  /** What has come of an event that was not ended. */
  private pending: string[] = [];
  /** How many characters that are: there may be `MAX_EVENT_CHARACTERS`. */
  pendingCharacters = 0;
  /** Its last characters. */
  private last = '';

  /** The events, without their ends, that a piece completes. */
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

  /** What has come of an event that was not ended. */
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
