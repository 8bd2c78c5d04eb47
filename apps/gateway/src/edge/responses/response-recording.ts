import type { FastifyReply } from 'fastify';
import type { ClientConnection, SavedHttpResponse } from '#application';
import { addReceipt } from '../pay-per-request/receipts.ts';

/** A longer answer is delivered, but not kept. */
export const MAX_SAVED_BYTES = 8 * 1024 * 1024;

/** What is kept of an answer, to be replayed. */
export class ResponseRecording {
  private chunks: Uint8Array[] = [];
  private size = 0;
  private ended: Promise<void> | undefined;

  /** @param onEnd what is done with the answer; it is undefined when there is nothing that could be replayed */
  constructor(
    private readonly reply: FastifyReply,
    private readonly onEnd: (response: SavedHttpResponse | undefined) => Promise<void>,
  ) {}

  add(chunk: Uint8Array): void {
    this.size += chunk.byteLength;
    if (this.size <= MAX_SAVED_BYTES) this.chunks.push(chunk);
    else this.chunks = [];
  }

  /** Resolves when the answer may be seen to have ended: from then on, the next request is answered from the record. */
  end(last: unknown): Promise<void> {
    this.ended ??= this.onEnd(this.toSavedResponse(last));
    return this.ended;
  }

  private toSavedResponse(last: unknown): SavedHttpResponse | undefined {
    if (typeof last !== 'string' && !(last instanceof Uint8Array)) return undefined;
    this.add(Buffer.from(last));
    if (this.size > MAX_SAVED_BYTES) return undefined;
    const { reply } = this;
    return { status: reply.statusCode, headers: reply.getHeaders(), body: Buffer.concat(this.chunks) };
  }
}

const recordings = new WeakMap<FastifyReply, ResponseRecording>();

export function attachRecording(reply: FastifyReply, recording: ResponseRecording): void {
  recordings.set(reply, recording);
}

/** For code that writes an answer past Fastify; undefined for almost all answers. */
export function getRecording(reply: FastifyReply): ResponseRecording | undefined {
  return recordings.get(reply);
}

/** Whether the answer can be had later, by a repeat of the request or by its id: then it is made though nobody waits. */
export function isResponseStored(reply: FastifyReply): boolean {
  const { store } = (reply.request.body ?? {}) as { readonly store?: unknown };
  return store === true || recordings.has(reply);
}

/**
 * Resolves when the client has gone before the end of its answer.
 * @param onClose called when the connection has ended or the answer has
 */
export function waitForDisconnect({ raw }: FastifyReply, onClose?: () => void): Promise<void> {
  return new Promise((resolve) => {
    if (raw.destroyed) resolve();
    raw.on('close', () => {
      onClose?.();
      if (!raw.writableEnded) resolve();
    });
  });
}

/** Who waits for an answer in one piece. Streams have a client of their own: nothing is listened for that nobody asks. */
export class HttpClientConnection implements ClientConnection {
  constructor(private readonly reply: FastifyReply) {}

  get disconnected(): Promise<void> {
    return waitForDisconnect(this.reply);
  }

  get storesResponse(): boolean {
    return isResponseStored(this.reply);
  }
}

/** Fastify's `onSend`: an answer that is recorded is sent once that is done, with the receipt of its payment. */
export function handleOnSend(
  _: unknown,
  reply: FastifyReply,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
): void {
  addReceipt(reply);
  const recording = recordings.get(reply);
  if (!recording) done(null, payload);
  else void recording.end(payload).then(() => done(null, payload));
}
