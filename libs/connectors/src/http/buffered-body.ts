import type { Dispatcher } from 'undici';
import { ByteAccumulator, UpstreamError } from '#application';
import { type Headers, MAX_ERROR_BYTES } from './stream-relay.ts';

/** The longest are embeddings, 2,048 of 3,072 numbers, and pictures in base64; files are fetched on their own. */
export const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

/** An answer in one piece. */
export interface BufferedBody {
  readonly status: number;
  readonly headers: Headers;
  /** As far as it came. */
  readonly text: string;
  /** Why it broke off, where it did. */
  readonly error: unknown;
}

/**
 * Receives an answer in one piece, at undici's lowest level: to read a body as a stream would take longer than all that
 * is done to it.
 */
export class BufferedBodyReader implements Dispatcher.DispatchHandler {
  private readonly outcome = Promise.withResolvers<BufferedBody>();
  private readonly accumulator = new ByteAccumulator();
  private head: { readonly status: number; readonly headers: Headers } | undefined;
  private controller: Dispatcher.DispatchController | undefined;

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this.abort);
  }

  /** @throws whatever kept the answer from beginning */
  get body(): Promise<BufferedBody> {
    return this.outcome.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.signal.aborted) this.abort();
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    if (status >= 200) this.head = { status, headers };
  }

  onResponseData(_: unknown, chunk: Uint8Array): void {
    this.accumulator.add(chunk);
    const isSuccess = this.head?.status === 200;
    if (this.accumulator.size <= (isSuccess ? MAX_RESPONSE_BYTES : MAX_ERROR_BYTES)) return;
    const tooLong = new UpstreamError('answer_too_long', 'The answer is too long');
    this.finish(isSuccess ? tooLong : undefined);
    this.controller?.abort(tooLong);
  }

  onResponseEnd(): void {
    this.finish(undefined);
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(error);
  }

  private readonly abort = (): void => this.controller?.abort(this.signal.reason);

  private finish(error: unknown): void {
    this.signal.removeEventListener('abort', this.abort);
    const { head, outcome } = this;
    if (head) outcome.resolve({ ...head, text: this.accumulator.bytes.toString('utf8'), error });
    else outcome.reject(error);
  }
}
