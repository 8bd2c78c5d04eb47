import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { ChatClient } from '#application';
import { type Recording, recordingOf } from './recording.ts';

/** A stream that is silent for longer gets a comment, so that nobody between it and its client takes it for dead. */
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE = ': COUNTINGHOUSE PROCESSING\n\n';
/** A client that takes nothing for this long is taken as gone. */
const STALLED_MS = 60_000;

/** A client that receives server-sent events. Bytes go out as they come; a slow reader is waited for. */
export class SseClient implements ChatClient {
  private readonly response: ServerResponse;
  private readonly recording: Recording | undefined;
  private readonly silence: NodeJS.Timeout;

  /** Takes the reply over and sends its head. */
  constructor(reply: FastifyReply, keepAliveMs = KEEP_ALIVE_MS) {
    reply.hijack();
    this.response = reply.raw;
    this.recording = recordingOf(reply);
    this.response.on('error', () => {}); // shows in `gone`
    reply.headers({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    this.response.writeHead(200, reply.getHeaders() as Record<string, string>);
    this.silence = setInterval(() => this.gone || this.response.write(KEEP_ALIVE), keepAliveMs).unref();
    this.response.on('close', () => clearInterval(this.silence));
  }

  get gone(): boolean {
    return this.response.destroyed || this.response.writableEnded;
  }

  /** Whether what is written gets anywhere: to the client, or into the record for when it asks again. */
  get heard(): boolean {
    return !this.gone || this.recording !== undefined;
  }

  write(events: Uint8Array): Promise<void> | undefined {
    this.recording?.add(events);
    this.silence.refresh();
    return this.gone || this.response.write(events) ? undefined : this.room();
  }

  /** Sends the last events and ends. An answer that is recorded can be replayed before its end is seen. */
  end(events: string): void {
    const end = () => {
      if (!this.gone) this.response.end(events);
    };
    if (!this.recording) end();
    else void this.recording.end(events).then(end);
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
