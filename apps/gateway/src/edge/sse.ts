import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sseComment } from '#application';
import { departure, isKept, type Recording, recordingOf } from './recording.ts';

/** A stream that is silent for longer gets a comment, so that no proxy between takes it for dead. */
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE = sseComment('COUNTINGHOUSE PROCESSING');
/** A client that reads nothing for this long is treated as gone. */
const STALLED_MS = 60_000;

/**
 * A client that receives server-sent events. Nothing is sent before it begins, or has waited for too long: a failure until
 * then has a status of its own. Bytes go out as they come; a slow reader is waited for.
 */
export class SseClient {
  started = false;
  /** Resolves when the client has gone before the end. */
  readonly left: Promise<void>;
  private readonly response: ServerResponse;
  private silence: NodeJS.Timeout | undefined;
  private recording: Recording | undefined;
  /** An event that says nothing. */
  protected readonly keepAlive: string = KEEP_ALIVE;

  constructor(
    private readonly reply: FastifyReply,
    private readonly keepAliveMs = KEEP_ALIVE_MS,
  ) {
    this.response = reply.raw;
    this.left = departure(reply, () => clearInterval(this.silence));
  }

  get request(): FastifyRequest {
    return this.reply.request;
  }

  get requestId(): string {
    return this.request.id;
  }

  begin(): void {
    if (!this.started) this.open();
  }

  stillWaiting(): void {
    if (this.started || this.gone) return;
    this.open();
    this.response.write(this.keepAlive);
  }

  /** Takes the reply over and sends its head. */
  private open(): void {
    const { reply, response } = this;
    this.started = true;
    reply.hijack();
    this.recording = recordingOf(reply);
    response.on('error', () => {}); // shows in `gone`
    reply.headers({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    response.writeHead(200, reply.getHeaders() as Record<string, string>);
    this.silence = setInterval(() => this.gone || response.write(this.keepAlive), this.keepAliveMs).unref();
    if (this.gone) clearInterval(this.silence);
  }

  /** Whether the answer can be had later. */
  get keeps(): boolean {
    return isKept(this.reply);
  }

  /** Whether anyone receives what is written: the client, or what it can still ask for later. */
  get listening(): boolean {
    return !this.gone || this.keeps;
  }

  write(events: Uint8Array): Promise<void> | undefined {
    this.recording?.add(events);
    this.silence?.refresh();
    return this.gone || this.response.write(events) ? undefined : this.room();
  }

  /** Sends the last events and ends. An answer that is recorded can be replayed before its end is seen. */
  finish(events: string): void {
    const end = () => {
      if (!this.gone) this.response.end(events);
    };
    if (!this.recording) end();
    else void this.recording.end(events).then(end);
  }

  private get gone(): boolean {
    return this.response.destroyed || this.response.writableEnded;
  }

  private room(): Promise<void> {
    return new Promise((resolve) => {
      const { response } = this;
      const stalled = setTimeout(() => response.destroy(), STALLED_MS);
      const done = () => {
        clearTimeout(stalled);
        response.off('drain', done);
        response.off('close', done);
        resolve();
      };
      response.on('drain', done);
      response.on('close', done);
    });
  }
}
