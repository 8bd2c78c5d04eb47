import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { interruptAfter } from '#foundation';
import { completeHeaders } from './response-headers.ts';
import { getRecording, isResponseStored, type ResponseRecording, waitForDisconnect } from './response-recording.ts';

/**
 * Streams a response to a client. Nothing is sent before the response starts, so an earlier failure gets its own
 * status. Bytes are sent as they arrive. `write` makes the caller wait for a slow client, until `ConnectionGuard`
 * closes the connection of a client that does not read.
 */
export class HttpStreamWriter {
  hasStarted = false;
  /** Resolves when the client disconnects before the end. */
  readonly disconnected: Promise<void>;
  protected readonly response: ServerResponse;
  private recording: ResponseRecording | undefined;

  /** @param onClose called when the connection or the response has ended */
  constructor(
    protected readonly reply: FastifyReply,
    onClose?: () => void,
  ) {
    this.response = reply.raw;
    this.disconnected = waitForDisconnect(reply, onClose);
  }

  get request(): FastifyRequest {
    return this.reply.request;
  }

  get requestId(): string {
    return this.request.id;
  }

  /** Takes over the reply from Fastify and writes its head. */
  protected open(headers: Readonly<Record<string, string>>): void {
    const { reply, response } = this;
    this.hasStarted = true;
    reply.hijack();
    this.recording = getRecording(reply);
    response.on('error', () => {}); // reported by `isClosed`
    reply.headers({ ...headers, 'x-accel-buffering': 'no' });
    completeHeaders(reply);
    response.writeHead(200, reply.getHeaders() as Record<string, string>);
  }

  /** Whether the response is completed even without a client, because it is stored. */
  get storesResponse(): boolean {
    return isResponseStored(this.reply);
  }

  /** Whether anyone receives what is written: the connected client, or a later request for the stored response. */
  get isListening(): boolean {
    return !this.isClosed || this.storesResponse;
  }

  /** Returns a promise if the buffer is full. It resolves when more can be written, or the connection is closed. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    this.recording?.add(chunk);
    return this.isClosed || this.response.write(chunk) ? undefined : this.waitForDrain();
  }

  /**
   * Sends the last chunk and ends the response. A recorded response is saved first, so that it can be replayed once its
   * end is visible.
   */
  finish(last: string): void {
    const end = () => {
      if (!this.isClosed) this.response.end(last);
    };
    if (!this.recording) end();
    else void this.recording.end(last).then(end);
  }

  /**
   * Sends the last chunk and closes the connection before the end of the response: many clients take a response that
   * ends for a complete one, whatever it contains. A recorded response is saved first.
   */
  finishIncomplete(last: string): void {
    const end = () => {
      if (!this.isClosed) interruptAfter(this.response, last);
    };
    if (!this.recording) end();
    else void this.recording.end(last, { isIncomplete: true }).then(end);
  }

  /** Ends the response so that the client notices that it is incomplete. Nothing is saved for a replay. */
  abort(): void {
    const end = () => void this.response.destroy();
    if (!this.recording) end();
    else void this.recording.end(undefined).then(end);
  }

  protected get isClosed(): boolean {
    return this.response.destroyed || this.response.writableEnded;
  }

  private waitForDrain(): Promise<void> {
    return new Promise((resolve) => {
      const { response } = this;
      const done = () => {
        response.off('drain', done);
        response.off('close', done);
        resolve();
      };
      response.on('drain', done);
      response.on('close', done);
    });
  }
}
