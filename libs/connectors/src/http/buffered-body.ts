import type { Dispatcher } from 'undici';
import { ByteAccumulator, UpstreamError } from '#application';
import { type Headers, MAX_ERROR_BYTES } from './stream-relay.ts';

/**
 * Limit of a buffered response that is not an error response; a longer one fails with `answer_too_long`. The longest
 * are embeddings (2,048 vectors of 3,072 numbers) and images in base64. Other files are downloaded separately.
 */
export const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

/** A non-streaming response. */
export interface BufferedBody {
  readonly status: number;
  readonly headers: Headers;
  /** The body as far as it was received. */
  readonly text: string;
  /**
   * Why the body ended early. Undefined if the body is complete, and for an error body of more than `MAX_ERROR_BYTES`,
   * whose rest is not read.
   */
  readonly error: unknown;
}

/**
 * Buffers a complete response as an undici handler: reading the body as a stream would take longer than all other
 * processing of it.
 */
export class BufferedBodyReader implements Dispatcher.DispatchHandler {
  private readonly outcome = Promise.withResolvers<BufferedBody>();
  private readonly accumulator = new ByteAccumulator();
  private head: { readonly status: number; readonly headers: Headers } | undefined;
  private controller: Dispatcher.DispatchController | undefined;
  private requestSentAtMs: number | undefined;

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this.abort);
  }

  /** Rejects only if no response started. A body that ended early resolves with its `error`. */
  get body(): Promise<BufferedBody> {
    return this.outcome.promise;
  }

  /** When the complete request was written to the connection, by `performance.now()`; undefined before. */
  get sentAtMs(): number | undefined {
    return this.requestSentAtMs;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.signal.aborted) this.abort();
  }

  onRequestSent(): void {
    this.requestSentAtMs = performance.now();
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    if (status >= 200) this.head = { status, headers };
  }

  onResponseData(_: unknown, chunk: Uint8Array): void {
    this.accumulator.add(chunk);
    const isSuccess = this.head?.status === 200;
    if (this.accumulator.size <= (isSuccess ? MAX_RESPONSE_BYTES : MAX_ERROR_BYTES)) return;
    const tooLong = new UpstreamError('answer_too_long', 'The response of the provider is too long');
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
