import type { Dispatcher } from 'undici';
import { type Headers, MAX_REFUSAL } from './relay.ts';

/** An answer in one piece. */
export interface WholeBody {
  readonly status: number;
  readonly headers: Headers;
  /** As far as it came. */
  readonly text: string;
  /** Why it broke off, where it did. */
  readonly broken: unknown;
}

/**
 * Receives an answer in one piece, at undici's lowest level: to read a body as a stream would take longer than all that
 * is done to it.
 */
export class WholeReader implements Dispatcher.DispatchHandler {
  private readonly outcome = Promise.withResolvers<WholeBody>();
  private readonly pieces: Uint8Array[] = [];
  private size = 0;
  private begun: { readonly status: number; readonly headers: Headers } | undefined;
  private controller: Dispatcher.DispatchController | undefined;

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this.abort);
  }

  /** @throws whatever kept the answer from beginning */
  get body(): Promise<WholeBody> {
    return this.outcome.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.signal.aborted) this.abort();
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    if (status >= 200) this.begun = { status, headers };
  }

  onResponseData(_: unknown, piece: Uint8Array): void {
    this.pieces.push(piece);
    this.size += piece.length;
    if (this.begun?.status === 200 || this.size <= MAX_REFUSAL) return;
    this.finish(undefined);
    this.controller?.abort(new Error('a refusal is not read any further'));
  }

  onResponseEnd(): void {
    this.finish(undefined);
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(error);
  }

  private readonly abort = (): void => this.controller?.abort(this.signal.reason);

  private finish(broken: unknown): void {
    this.signal.removeEventListener('abort', this.abort);
    const { begun, outcome } = this;
    if (begun) outcome.resolve({ ...begun, text: Buffer.concat(this.pieces).toString('utf8'), broken });
    else outcome.reject(broken);
  }
}
