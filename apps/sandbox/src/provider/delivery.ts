/** Sends and bills the completions of simulated providers. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '../router.ts';
import type { Fault } from './directive.ts';

type Headers = Readonly<Record<string, string>>;

/** A content chunk and the tokens that are charged for it. */
export interface Frame {
  readonly event: string;
  readonly tokens: number;
}

export interface StreamParts {
  readonly opening: string;
  readonly content: readonly Frame[];
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
 * Sends a stream. With a delay between chunks, a disconnect stops generation and billing if `stopsOnDisconnect` is set.
 * Without a delay everything is written and billed at once.
 */
async function deliverStream(
  { request, response }: Call,
  { opening, content, closing, malformed, error }: StreamParts,
  chunkDelay: number,
  { headers, fault, stopsOnDisconnect, charge }: ResponseDelivery,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...headers });
  if (fault === 'malformed') return void response.end(opening + malformed);

  const isInterrupted = fault === 'cut' || fault === 'error';
  let frames = isInterrupted ? content.slice(0, content.length / 2) : content;
  let pending = opening;
  for (const [index, { event }] of frames.entries()) {
    if (chunkDelay > 0 && index > 0) {
      if (!response.destroyed) response.write(pending);
      pending = '';
      await delay(chunkDelay, undefined, { ref: false });
      if (stopsOnDisconnect && response.destroyed) {
        frames = frames.slice(0, index);
        break;
      }
    }
    pending += event;
  }

  charge(frames.reduce((total, { tokens }) => total + tokens, 0));
  if (response.destroyed) return;
  if (fault === 'cut') response.write(pending, () => request.socket.destroy());
  else response.end(pending + (fault === 'error' ? error : closing));
}

export function getFirstHalf(json: string): string {
  return json.slice(0, json.length / 2);
}
