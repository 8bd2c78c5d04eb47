/** A streamed answer on its way through: pieces of a body come in, events in our shape go out. */
import type { Dispatcher } from 'undici';
import {
  MAX_EVENT_CHARACTERS,
  parseSseData,
  type SearchStatus,
  SSE_DONE,
  type SseEventSink,
  SseParser,
  UpstreamError,
} from '#application';
import type { Usage } from '#domain';
import { StreamIdleTimer } from './stream-idle-timer.ts';

/** What a search is passed on with. */
export const NO_EVENTS = new Uint8Array();

/** How long a body may stay open behind its end marker. */
const END_TIMEOUT_MS = 1_000;
/** How long an answer whose receiver was slow is read on when its time is up: what was made lies between, with its usage at the end. */
const CATCH_UP_MS = 1_000;
/** A refusal is read up to this many bytes, and no further. */
export const MAX_ERROR_BYTES = 64 * 1024;

export type Headers = Readonly<Record<string, unknown>>;

/** Takes whole events, or a search that happened behind those before. */
export type ForwardEvents = (events: Uint8Array, search?: SearchStatus) => void;

/**
 * Reads the server-sent events of a protocol, sends on what each becomes, and knows of the answer what the gateway must
 * know. Bytes are handled as Latin-1 text, which keeps them whatever their encoding and wherever a piece ends.
 */
export abstract class EventTranslator {
  /** The end marker has come; what follows it is not looked at. */
  protected hasEndMarker = false;
  /** The answer has said why it ends, though its end marker may be missing. */
  protected hasFinishReason = false;
  private readonly reader = new SseParser();

  /** What is passed on of the data of one event: events in our shape, or nothing. @throws UpstreamError for an error */
  protected abstract translateEvent(data: string): string;
  abstract usage(): Usage | undefined;
  /** What the upstream calls the answer; undefined before it has said so. */
  abstract vendorId(): string | undefined;
  abstract getDeliveredText(): string;
  /** The bytes of that text, or more: no token has less than one. Asked with every piece of a metered answer. */
  abstract getMaxGeneratedTokens(): number;
  /** Whether anything of the text was passed on. */
  abstract hasForwarded(): boolean;

  /** Whether anything was generated, be it nothing that can be read. */
  get isGenerating(): boolean {
    return this.getDeliveredText() !== '';
  }

  /** Whether the answer is complete, whatever follows in the body. */
  get isEnded(): boolean {
    return this.hasEndMarker;
  }

  /**
   * Takes the next piece of the body, wherever it ends; `forward` gets whole events.
   * @throws UpstreamError when the upstream reports an error, or an event has no end, after what came before it has been passed on
   */
  accept(chunk: Uint8Array, forward: ForwardEvents): void {
    this.translateEvents(this.reader.read(decodeLatin1(chunk)), forward);
    if (this.reader.pendingCharacters > MAX_EVENT_CHARACTERS)
      throw new UpstreamError('answer_too_long', 'The upstream sent an event that is too long');
  }

  /** @throws UpstreamError when the body has ended and the answer has not */
  end(forward: ForwardEvents): void {
    const { rest } = this.reader;
    if (rest.trim() !== '') this.translateEvents([rest], forward);
    if (this.hasEndMarker || this.hasFinishReason) return;
    throw new UpstreamError('upstream_error', 'The upstream ended the stream before the answer was complete');
  }

  protected translateEvents(events: readonly string[], forward: ForwardEvents): void {
    let out = '';
    try {
      for (const event of events) {
        if (this.hasEndMarker) break;
        const data = parseSseData(event);
        if (data === SSE_DONE) this.hasEndMarker = true;
        else if (data !== undefined) out += this.translateEvent(data);
      }
    } finally {
      if (out !== '') forward(Buffer.from(out, 'latin1')); // what came before an event that broke off the answer
    }
  }
}

export interface RelayOptions {
  readonly translator: EventTranslator;
  readonly signal: AbortSignal;
  /** Longest silence once anything has been generated: before that only the signal bounds it, since models think. */
  readonly idleTimeoutMs: number | undefined;
  /** What an answer with another status than 200 means. */
  mapErrorResponse(status: number, headers: Headers, body: string): UpstreamError;
  /** What a connection error means: whether the answer had started makes a difference. */
  mapConnectionError(error: unknown, isStarted: boolean): UpstreamError;
}

/**
 * Receives a streamed answer and hands it on, at undici's lowest level: a piece is received, translated and sent in one
 * go, and only a receiver without room stops the reading. Bodies as streams would cost more than all the rest.
 */
export class StreamRelay implements Dispatcher.DispatchHandler {
  private readonly begin = Promise.withResolvers<void>();
  private readonly outcome = Promise.withResolvers<void>();
  private readonly bufferedEntries: (Uint8Array | SearchStatus)[] = [];
  private controller: Dispatcher.DispatchController | undefined;
  private receiver: SseEventSink | undefined;
  private errorResponse: { readonly status: number; readonly headers: Headers; body: string } | undefined;
  private isResponding = false;
  private isFinished = false;
  private abortTimer: NodeJS.Timeout | undefined;
  private idleTimeout: NodeJS.Timeout | undefined;
  /** The receiver has no room: then the silence is ours. */
  private isPaused = false;
  /** The time is up, and what is still read is for nobody but the bill. */
  private isCatchingUp = false;
  private readonly idleTimer = new StreamIdleTimer();

  constructor(private readonly options: RelayOptions) {
    this.outcome.promise.catch(() => {}); // reported by `started` or by `pipeTo`
    options.signal.addEventListener('abort', this.abort);
  }

  /** Resolves when there is something to hand on, or all has come. @throws UpstreamError when nothing has */
  get started(): Promise<void> {
    return this.begin.promise;
  }

  /** Hands on what has come and what comes. @throws UpstreamError when the answer breaks off */
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

  /** For how long nothing came that can be seen of an answer. @param graceMs so long the first piece may take */
  getIdleMs(graceMs: number): number {
    return this.idleTimer.getIdleMs(graceMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.options.signal.aborted) this.abort();
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    if (status < 200) return; // the answer is yet to come
    this.isResponding = true;
    if (status === 200) return;
    this.errorResponse = { status, headers, body: '' };
    this.startIdleTimeout();
  }

  onResponseData(_: unknown, chunk: Uint8Array): void {
    const { errorResponse, idleTimeout } = this;
    const { translator } = this.options;
    idleTimeout?.refresh();
    if (errorResponse) this.appendErrorBody(errorResponse, chunk);
    else this.runStep(() => translator.accept(chunk, this.forward));
    if (this.isFinished) return;
    if (!this.isPaused) this.idleTimer.recordActivity();
    if (this.idleTimer.hasOutput || translator.getMaxGeneratedTokens() === 0) return;
    this.idleTimer.markOutput();
    this.startIdleTimeout();
  }

  onResponseEnd(): void {
    if (!this.errorResponse) this.runStep(() => this.options.translator.end(this.forward));
    this.finish();
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(error);
  }

  private appendErrorBody(errorResponse: { body: string }, chunk: Uint8Array): void {
    errorResponse.body += String(chunk);
    if (errorResponse.body.length <= MAX_ERROR_BYTES) return;
    this.finish();
    this.controller?.abort(new Error('a refusal is not read any further'));
  }

  private readonly abort = (): void => {
    const end = () => this.controller?.abort(this.options.signal.reason);
    if (!this.isPaused) return void end();
    this.isCatchingUp = true;
    this.abortTimer = setTimeout(end, CATCH_UP_MS);
    this.resume();
  };

  private readonly forward = (events: Uint8Array, search?: SearchStatus): void => {
    if (this.isCatchingUp) return;
    if (this.receiver === undefined) {
      this.bufferedEntries.push(search ?? events);
      this.begin.resolve();
      return;
    }
    const whenDrained = this.receiver(events, search);
    if (whenDrained === undefined) return;
    this.isPaused = true;
    this.idleTimer.setPaused(true);
    this.controller?.pause();
    void whenDrained.then(() => this.resume());
  };

  private resume(): void {
    if (!this.isPaused) return;
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
    else this.controller?.abort(new UpstreamError('timeout', 'The upstream took too long'));
  };

  private runStep(step: () => void): void {
    if (this.isFinished) return;
    try {
      step();
      if (!this.options.translator.isEnded) return;
      this.finish();
      this.abortTimer = setTimeout(() => this.controller?.abort(new Error('the body has no end')), END_TIMEOUT_MS);
    } catch (error) {
      this.finish(error);
      this.controller?.abort(error as Error);
    }
  }

  /** Behind its end marker a body is read to its end, which lets its connection be used again. */
  private finish(error?: unknown): void {
    clearTimeout(this.abortTimer);
    clearTimeout(this.idleTimeout);
    if (this.isFinished) return;
    this.isFinished = true;
    this.idleTimer.setPaused(true);
    this.options.signal.removeEventListener('abort', this.abort);
    const failure = this.toFailure(this.isCatchingUp ? this.options.signal.reason : error);
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

export function decodeLatin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
