/**
 * Sends and bills the completions of simulated providers. A stream is generated at the pace of its directive, whether its
 * client reads or not, and billed up to the moment of a disconnect if its provider then stops.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '../router.ts';
import type { Fault } from './directive.ts';

type Headers = Readonly<Record<string, string>>;

/** These faults end a stream after half of its content. */
const MID_STREAM_FAULTS: ReadonlySet<Fault> = new Set(['cut', 'cut_frame', 'error']);

/** A content chunk and the tokens that are charged for it. */
export interface Frame {
  readonly event: string;
  readonly tokens: number;
}

export interface StreamParts {
  readonly opening: string;
  readonly content: readonly Frame[];
  /** The first event ends the content, or states the finish reason. */
  readonly closing: string;
  /** A data line that is not JSON. */
  readonly malformed: string;
  /** An error event in the middle of the stream. */
  readonly error: string;
}

export interface ResponseDelivery {
  readonly headers: Headers;
  readonly fault: Fault | undefined;
  /** Whether the provider stops generating and billing when the client disconnects. */
  readonly stopsOnDisconnect: boolean;
  /** Charges the response with this many visible tokens. */
  charge(visible: number): void;
  /** Returns the reported usage for this many visible tokens. */
  usage(visible: number): SandboxUsage;
}

export interface SandboxUsage {
  readonly prompt: number;
  readonly completion: number;
}

/** Writes responses as plaintext or encrypted. */
export interface OutputWriter {
  writeComplete(call: Call, json: string, visible: number, delivery: ResponseDelivery): void | Promise<void>;
  writeStream(call: Call, events: StreamParts, chunkDelay: number, delivery: ResponseDelivery): Promise<void>;
}

export const PLAINTEXT_WRITER: OutputWriter = { writeComplete: deliverComplete, writeStream: deliverStream };

/** Sends a non-streaming response. */
function deliverComplete(
  call: Call,
  json: string,
  visible: number,
  { headers, fault, charge }: ResponseDelivery,
): void {
  if (fault === 'malformed') {
    call.sendJsonText(200, getFirstHalf(json), headers);
  } else if (fault === 'cut') {
    charge(Math.floor(visible / 2));
    const length = Buffer.byteLength(json);
    call.response.writeHead(200, { ...headers, 'content-type': 'application/json', 'content-length': length });
    call.response.write(getFirstHalf(json), () => call.request.socket.destroy());
  } else {
    charge(visible);
    call.sendJsonText(200, json, headers);
  }
}

/**
 * Waits while output is generated. Ends early if the client disconnects.
 * @returns the part of the time that had passed then; 1 without a disconnect
 */
export async function generateFor(milliseconds: number, response: ServerResponse): Promise<number> {
  if (response.destroyed) return 0;
  const startedAt = performance.now();
  const disconnect = new AbortController();
  let generated = 1;
  const onClose = () => {
    generated = Math.min((performance.now() - startedAt) / milliseconds, 1);
    disconnect.abort();
  };
  response.once('close', onClose);
  await delay(milliseconds, undefined, { ref: false, signal: disconnect.signal }).catch(() => {}); // disconnected
  response.off('close', onClose);
  return generated;
}

/**
 * Sends a stream. With a delay between chunks, a disconnect stops generation and billing if `stopsOnDisconnect` is set,
 * also in the middle of a chunk. Without a delay everything is written and billed at once.
 */
async function deliverStream(
  { request, response }: Call,
  { opening, content, closing, malformed, error }: StreamParts,
  chunkDelay: number,
  { headers, fault, stopsOnDisconnect, charge }: ResponseDelivery,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...headers });
  if (fault === 'malformed') return void response.end(opening + malformed);

  const frames = fault !== undefined && MID_STREAM_FAULTS.has(fault) ? content.slice(0, content.length / 2) : content;
  let pending = opening;
  let generated = 0;
  for (const [index, { event, tokens }] of frames.entries()) {
    if (chunkDelay > 0 && index > 0) {
      if (!response.destroyed) response.write(pending);
      pending = '';
      if (stopsOnDisconnect) {
        const part = await generateFor(chunkDelay, response);
        if (part < 1) return charge(generated + Math.floor(part * tokens));
      } else await delay(chunkDelay, undefined, { ref: false });
    }
    generated += tokens;
    pending += event;
  }

  charge(generated);
  if (response.destroyed) return;
  const next = content[frames.length]?.event ?? closing;
  const breakAfter = (rest: string) => void response.write(pending + rest, () => request.socket.destroy());
  if (fault === 'cut') breakAfter('');
  else if (fault === 'cut_frame') breakAfter(getFirstHalf(next));
  else if (fault === 'cut_usage') breakAfter(getFirstEvent(closing));
  else response.end(pending + (fault === 'error' ? error : closing));
}

function getFirstEvent(events: string): string {
  return /^.*?\r?\n\r?\n/s.exec(events)?.[0] ?? '';
}

export function getFirstHalf(json: string): string {
  return json.slice(0, json.length / 2);
}
