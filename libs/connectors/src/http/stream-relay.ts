/** Relays a streamed response: receives chunks of the provider's body and forwards events in the gateway's format. */
import type { Dispatcher } from 'undici';
import {
  ByteAccumulator,
  MAX_EVENT_CHARACTERS,
  type ReportedBill,
  type SearchStatus,
  SSE_DONE,
  type SseEventSink,
  SseParser,
  UpstreamError,
} from '#application';
import type { Usage } from '#domain';
import { CatchUp } from './catch-up.ts';
import { decodeLatin1 } from './latin1.ts';
import { StreamIdleTimer } from './stream-idle-timer.ts';

/** Passed as `events` when a web search is forwarded. */
export const NO_EVENTS = new Uint8Array();

/** How long a body may stay open after its end marker. */
const END_TIMEOUT_MS = 1_000;
/** Limit of the body of an error response; the rest is not read. */
export const MAX_ERROR_BYTES = 64 * 1024;

export type Headers = Readonly<Record<string, unknown>>;

/** Receives complete events, or a web search that happened after the events forwarded so far. */
export type ForwardEvents = (events: Uint8Array, search?: SearchStatus) => void;

/**
 * Translates the server-sent events of a protocol into the gateway's format, and collects what the gateway needs to
 * know about the response. Bytes are handled as Latin-1 text, which preserves them in any encoding and at any chunk
 * boundary.
 */
export abstract class EventTranslator {
  /** The end marker has arrived; later events are ignored. */
  protected hasEndMarker = false;
  /** The response has reported why it ends. Some providers send no end marker after that. */
  protected hasFinishReason = false;
  private readonly parser = new SseParser();

  /**
   * Translates the data of one event into any number of events in the gateway's format.
   * @returns '' if nothing is forwarded
   * @throws UpstreamError if the event reports an error
   */
  protected abstract translateEvent(data: string): string;
  abstract usage(): Usage | undefined;
  /** The usage of the input, once the protocol has reported it at the start. Its output is preliminary. */
  getInputUsage?(): Usage | undefined;
  /** The provider's id of the response; undefined until it has arrived. */
  abstract vendorId(): string | undefined;
  abstract reportedBill(): ReportedBill;
  abstract getDeliveredText(): string;
  /**
   * Returns an upper bound of the generated tokens: at least the number of bytes of the delivered text, because every
   * token has at least one byte. This method can be called for every chunk, so it must be fast.
   */
  abstract getMaxGeneratedTokens(): number;
  /** Whether any of the text was forwarded. */
  abstract hasForwarded(): boolean;

  /** Whether anything was generated, including output without readable text. */
  get isGenerating(): boolean {
    return this.getDeliveredText() !== '';
  }

  /** Whether the response is complete, whatever follows in the body. */
  get isEnded(): boolean {
    return this.hasEndMarker;
  }

  /**
   * Processes the next chunk of the body, which may end anywhere; `forward` receives complete events.
   * @throws UpstreamError if the provider reports an error, or an incomplete event is already too long; earlier events
   * are still forwarded
   */
  accept(chunk: Uint8Array, forward: ForwardEvents): void {
    this.translateEvents(this.parser.read(decodeLatin1(chunk)), forward);
    if (this.parser.isTooLong)
      throw new UpstreamError('answer_too_long', 'The provider sent an event that is too long', { hasOpenCost: true });
  }

  /**
   * Processes the end of the body.
   * @throws UpstreamError if the response is not complete, or its last event reports an error
   */
  end(forward: ForwardEvents): void {
    this.translateEvents(this.parser.end(), forward);
    if (this.hasEndMarker || this.hasFinishReason) return;
    const message = 'The provider ended the stream before the response was complete';
    throw new UpstreamError('upstream_error', message, { hasOpenCost: true });
  }

  /** @param events their data */
  protected translateEvents(events: readonly string[], forward: ForwardEvents): void {
    let out = '';
    try {
      for (const data of events) {
        if (this.hasEndMarker) break;
        if (data === SSE_DONE) this.hasEndMarker = true;
        else out += this.translateEvent(data);
      }
    } finally {
      if (out !== '') forward(Buffer.from(out, 'latin1')); // also the events before one that reports an error
    }
  }
}

export interface RelayOptions {
  readonly translator: EventTranslator;
  readonly signal: AbortSignal;
  /**
   * Maximum idle time after the first output, and of an error response. Models reason before the first output, so until
   * then only `signal` limits the time.
   */
  readonly idleTimeoutMs: number | undefined;
  /** Converts a response whose status is not 200. */
  mapErrorResponse(status: number, headers: Headers, body: string): UpstreamError;
  /** @param isStarted whether the response had started before the failure */
  mapConnectionError(error: unknown, isStarted: boolean): UpstreamError;
}

/**
 * Receives a streamed response as an undici handler and forwards it. Each chunk is translated and forwarded
 * synchronously; reading pauses only while the receiver is full. Node streams would cost more than all other
 * processing.
 */
export class StreamRelay implements Dispatcher.DispatchHandler {
  private readonly begin = Promise.withResolvers<void>();
  private readonly outcome = Promise.withResolvers<void>();
  private readonly bufferedEntries: (Uint8Array | SearchStatus)[] = [];
  private controller: Dispatcher.DispatchController | undefined;
  private receiver: SseEventSink | undefined;
  private errorResponse: { readonly status: number; readonly headers: Headers; body: string } | undefined;
  /** The body, if it is a JSON object instead of a stream; undefined before its first byte that is not a space. */
  private jsonBody: ByteAccumulator | false | undefined;
  private requestSentAtMs: number | undefined;
  private isResponding = false;
  private isFinished = false;
  private abortTimer: NodeJS.Timeout | undefined;
  private idleTimeout: NodeJS.Timeout | undefined;
  /** The receiver is full, so the provider is not idle. */
  private isPaused = false;
  private readonly pause = { sinceMs: 0, totalMs: 0 };
  /** Set once the request was aborted: the rest of the response is read only for its usage. */
  private catchUp: CatchUp | undefined;
  private readonly idleTimer = new StreamIdleTimer();

  constructor(private readonly options: RelayOptions) {
    this.outcome.promise.catch(() => {}); // reported by `started` or by `pipeTo`
    options.signal.addEventListener('abort', this.abort);
  }

  /** Resolves at the first forwarded events, or at the end of the response. Rejects if the response fails before. */
  get started(): Promise<void> {
    return this.begin.promise;
  }

  /** When the complete request was written to the connection, by `performance.now()`; undefined before. */
  get sentAtMs(): number | undefined {
    return this.requestSentAtMs;
  }

  /** The body of a provider that sent one JSON object although a stream was requested, as far as it was received. */
  get jsonText(): string | undefined {
    return this.jsonBody ? this.jsonBody.bytes.toString('utf8') : undefined;
  }

  /**
   * Forwards the buffered events and all later ones until the end. Rejects with UpstreamError if the response fails.
   * @throws any error of the receiver for a buffered event
   */
  pipeTo(receiver: SseEventSink): Promise<void> {
    this.receiver = receiver;
    try {
      for (const entry of this.bufferedEntries) {
        if (entry instanceof Uint8Array) this.forward(entry);
        else this.forward(NO_EVENTS, entry);
      }
    } catch (error) {
      this.controller?.abort(error as Error);
      throw error;
    }
    return this.outcome.promise;
  }

  /** Returns the idle time of the provider. @param graceMs how much of the time to the first chunk does not count */
  getIdleMs(graceMs: number): number {
    return this.idleTimer.getIdleMs(graceMs);
  }

  /** For how long nothing was read because the receiver was full. */
  get pausedMs(): number {
    return this.pause.totalMs + (this.isPaused ? performance.now() - this.pause.sinceMs : 0);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.options.signal.aborted) this.abort();
  }

  onRequestSent(): void {
    this.requestSentAtMs = performance.now();
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    if (status < 200) return; // informational: the final response follows
    this.isResponding = true;
    if (status === 200) return;
    this.errorResponse = { status, headers, body: '' };
    this.startIdleTimeout();
  }

  onResponseData(_: unknown, chunk: Uint8Array): void {
    const { errorResponse, idleTimeout } = this;
    const { translator } = this.options;
    idleTimeout?.refresh();
    this.catchUp?.recordRead(chunk.length);
    if (errorResponse) this.appendErrorBody(errorResponse, chunk);
    else if (this.isJsonBody(chunk)) this.appendJsonBody(chunk);
    else this.runStep(() => translator.accept(chunk, this.forward));
    if (this.isFinished) return;
    if (!this.isPaused) this.idleTimer.recordActivity();
    if (this.idleTimer.hasOutput || translator.getMaxGeneratedTokens() === 0) return;
    this.idleTimer.markOutput();
    this.startIdleTimeout();
  }

  onResponseEnd(): void {
    if (!this.errorResponse && !this.jsonBody) this.runStep(() => this.options.translator.end(this.forward));
    this.finish();
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(error);
  }

  /** Whether the body starts like a JSON object. No line of an event stream starts like one. */
  private isJsonBody(chunk: Uint8Array): boolean {
    if (this.jsonBody === undefined) {
      const start = decodeLatin1(chunk).trimStart();
      if (start !== '') this.jsonBody = start.startsWith('{') && new ByteAccumulator();
    }
    return this.jsonBody instanceof ByteAccumulator;
  }

  private appendJsonBody(chunk: Uint8Array): void {
    const body = this.jsonBody as ByteAccumulator;
    body.add(chunk);
    if (body.size <= MAX_EVENT_CHARACTERS) return;
    const tooLong = new UpstreamError('answer_too_long', 'The response of the provider is too long');
    this.finish(tooLong);
    this.controller?.abort(tooLong);
  }

  private appendErrorBody(errorResponse: { body: string }, chunk: Uint8Array): void {
    errorResponse.body += String(chunk);
    if (errorResponse.body.length <= MAX_ERROR_BYTES) return;
    this.finish();
    this.controller?.abort(new Error('the error response is too long'));
  }

  private readonly abort = (): void => {
    const { reason } = this.options.signal;
    const end = () => {
      if (!this.isFinished) this.controller?.abort(reason);
    };
    if (this.isPaused) {
      this.catchUp = new CatchUp(end);
      this.catchUp.start(reason, () => this.resume());
    } else end();
  };

  private readonly forward = (events: Uint8Array, search?: SearchStatus): void => {
    if (this.catchUp) return;
    if (this.receiver === undefined) {
      this.bufferedEntries.push(search ?? events);
      this.begin.resolve();
      return;
    }
    const whenDrained = this.receiver(events, search);
    if (whenDrained === undefined) return;
    this.isPaused = true;
    this.pause.sinceMs = performance.now();
    this.idleTimer.setPaused(true);
    this.controller?.pause();
    void whenDrained.then(() => this.resume());
  };

  private resume(): void {
    if (!this.isPaused) return;
    this.pause.totalMs = this.pausedMs;
    this.isPaused = false;
    this.idleTimer.setPaused(false);
    this.idleTimeout?.refresh();
    this.controller?.resume();
  }

  private startIdleTimeout(): void {
    const { idleTimeoutMs } = this.options;
    if (idleTimeoutMs !== undefined && !this.isFinished) this.idleTimeout ??= setTimeout(this.onIdle, idleTimeoutMs);
  }

  private readonly onIdle = (): void => {
    if (this.isPaused) this.idleTimeout?.refresh();
    else this.controller?.abort(new UpstreamError('timeout', 'The provider took too long to respond'));
  };

  private runStep(step: () => void): void {
    if (this.isFinished) return;
    try {
      step();
      if (!this.options.translator.isEnded) return;
      this.finish();
      this.abortTimer = setTimeout(() => this.controller?.abort(new Error('the body did not end')), END_TIMEOUT_MS);
    } catch (error) {
      this.finish(error);
      this.controller?.abort(error as Error);
    }
  }

  /** After the end marker the body is read for up to `END_TIMEOUT_MS` more: its connection can be reused if it ends. */
  private finish(error?: unknown): void {
    clearTimeout(this.abortTimer);
    clearTimeout(this.idleTimeout);
    this.catchUp?.stop();
    if (this.isFinished) return;
    this.isFinished = true;
    this.idleTimer.setPaused(true);
    this.options.signal.removeEventListener('abort', this.abort);
    const failure = this.toFailure(this.catchUp ? this.options.signal.reason : error);
    if (failure) {
      this.begin.reject(failure);
      this.outcome.reject(failure);
    } else {
      this.begin.resolve();
      this.outcome.resolve();
    }
  }

  private toFailure(error: unknown): UpstreamError | undefined {
    const { errorResponse, options } = this;
    if (errorResponse) return options.mapErrorResponse(errorResponse.status, errorResponse.headers, errorResponse.body);
    return error === undefined ? undefined : options.mapConnectionError(error, this.isResponding);
  }
}
