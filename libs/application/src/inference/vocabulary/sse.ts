/**
 * Server-sent events, as all protocols of answers have them, read and written nowhere else:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { UpstreamFailure } from '../../failures.ts';
import type { Thing } from './things.ts';

/** The data of the event that ends a stream of OpenAI's. */
export const DONE = '[DONE]';

const EVENT_END = '\n\n';
/** Some vendors end lines with CR LF, as HTTP does. */
const ANY_EVENT_END = /\r?\n\r?\n/;
const LINE_END = /\r?\n/;
const DATA = 'data:';
const LATER_DATA = `\n${DATA}`;

/** One event. @param data one line, such as JSON */
export function sseEvent(data: string, type?: string): string {
  return type === undefined ? `data: ${data}${EVENT_END}` : `event: ${type}\ndata: ${data}${EVENT_END}`;
}

/** An event that clients ignore: it only shows that the stream is alive. */
export function sseComment(text: string): string {
  return `: ${text}${EVENT_END}`;
}

/** The data of an event; undefined where it has none, as a comment. @param event without its end */
export function sseData(event: string): string | undefined {
  const line = event.startsWith(DATA) ? 0 : event.indexOf(LATER_DATA) + 1;
  if (line === 0 && !event.startsWith(DATA)) return undefined;
  if (event.indexOf('\n', line) < 0) return event.slice(line + DATA.length).trim();
  const lines = event
    .split(LINE_END)
    .flatMap((line) => (line.startsWith(DATA) ? [line.slice(DATA.length).trim()] : []));
  return lines.join('\n');
}

/** The data of events that have come whole. */
export function sseDataIn(events: Uint8Array): readonly string[] {
  const text = Buffer.from(events.buffer, events.byteOffset, events.byteLength).toString('utf8');
  const found: string[] = [];
  for (const event of text.split(EVENT_END)) {
    const data = sseData(event);
    if (data !== undefined) found.push(data);
  }
  return found;
}

/** What an event of a chat or a response carries. @throws UpstreamFailure when it cannot be read */
export function parsedEvent(data: string): Thing {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new UpstreamFailure('upstream_error', 'The upstream sent an event that is not JSON', { cause });
  }
}

/** Takes a body apart into events, wherever its pieces end. */
export class SseReader {
  private pending = '';

  /** The events, without their ends, that a piece completes. */
  read(piece: string): readonly string[] {
    const text = this.pending + piece;
    // A long event is not looked through again with each of its pieces.
    if (!piece.includes('\n')) {
      this.pending = text;
      return [];
    }
    const events = text.includes('\r') ? text.split(ANY_EVENT_END) : text.split(EVENT_END);
    this.pending = events.pop() as string;
    return events;
  }

  /** What has come of an event that was not ended. */
  get rest(): string {
    return this.pending;
  }
}
