import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { addReceipt } from '../pay-per-request/receipts.ts';
import { getRecording, isResponseStored, type ResponseRecording, waitForDisconnect } from './response-recording.ts';

/**
 * A client that receives its answer piece by piece. Nothing is sent before it begins: a failure until then has a status of
 * its own. Bytes go out as they come; a slow reader is waited for, until `ConnectionGuard` ends the connection of one that reads nothing.
 */
export class HttpStreamWriter {
  hasStarted = false;
  /** Resolves when the client has gone before the end. */
  readonly disconnected: Promise<void>;
  protected readonly response: ServerResponse;
  private recording: ResponseRecording | undefined;

  /** @param onClose called when the connection has ended or the answer has */
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

  /** Takes the reply over and sends its head. */
  protected open(headers: Readonly<Record<string, string>>): void {
    const { reply, response } = this;
    this.hasStarted = true;
    reply.hijack();
    this.recording = getRecording(reply);
    response.on('error', () => {}); // shows in `isClosed`
    reply.headers({ ...headers, 'x-accel-buffering': 'no' });
    addReceipt(reply);
    response.writeHead(200, reply.getHeaders() as Record<string, string>);
  }

  /** Whether the answer can be had later. */
  get storesResponse(): boolean {
    return isResponseStored(this.reply);
  }

  /** Whether anyone receives what is written: the client, or what it can still ask for later. */
  get isListening(): boolean {
    return !this.isClosed || this.storesResponse;
  }

  /** Returns a promise when there is no room for more until that resolves. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    this.recording?.add(chunk);
    return this.isClosed || this.response.write(chunk) ? undefined : this.waitForDrain();
  }

  /** Sends the last piece and ends. An answer that is recorded can be replayed before its end is seen. */
  finish(last: string): void {
    const end = () => {
      if (!this.isClosed) this.response.end(last);
    };
    if (!this.recording) end();
    else void this.recording.end(last).then(end);
  }

  /** Ends so that the client sees that something is missing; there is nothing to replay. */
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
