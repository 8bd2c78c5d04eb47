import type { Dispatcher } from 'undici';
import type { EventReceiver, SearchNote, UpstreamFailure } from '#application';
import type { Usage } from '#domain';

/** What a search is passed on with. */
export const NO_EVENTS = new Uint8Array();

/** How long a body may stay open behind its end marker. */
const RUN_OUT_MS = 1_000;
/** Error bodies are read up to this many bytes. */
const MAX_ERROR_BODY = 64 * 1024;

export type Headers = Readonly<Record<string, unknown>>;

/** Takes whole events, or a search that happened behind those before. */
export type Pass = (events: Uint8Array, search?: SearchNote) => void;

/** What a protocol makes of a streamed body: OpenAI's events with our identity, and what the gateway needs to know. */
export interface Chunks {
  /** Whether the answer is complete, whatever follows in the body. */
  readonly ended: boolean;
  /**
   * Takes the next piece of the body, wherever it ends; `pass` gets whole events.
   * @throws UpstreamFailure when the upstream reports an error, after what came before it has been passed on
   */
  accept(piece: Uint8Array, pass: Pass): void;
  /** @throws UpstreamFailure when the body has ended and the answer has not */
  end(pass: Pass): void;
  usage(): Usage | undefined;
  /** What the upstream calls the answer; undefined before it has said so. */
  vendorId(): string | undefined;
  deliveredText(): string;
  /** Whether anything was generated, be it nothing that can be read. */
  readonly generating: boolean;
  /** Whether anything of the text was passed on. */
  hasTold(): boolean;
}

export interface RelayOptions {
  readonly chunks: Chunks;
  readonly signal: AbortSignal;
  /** What an answer with another status than 200 means. */
  refusalOf(status: number, headers: Headers, body: string): UpstreamFailure;
  /** What a connection error means: whether the answer had started makes a difference. */
  failureOf(error: unknown, started: boolean): UpstreamFailure;
}

/**
 * Receives a streamed answer and hands it on, at undici's lowest level: a piece is received, translated and sent in one
 * go, and only a receiver without room stops the reading. Bodies as streams would cost more than all the rest.
 */
export class Relay implements Dispatcher.DispatchHandler {
  private readonly begin = Promise.withResolvers<void>();
  private readonly outcome = Promise.withResolvers<void>();
  private readonly early: (Uint8Array | SearchNote)[] = [];
  private controller: Dispatcher.DispatchController | undefined;
  private receiver: EventReceiver | undefined;
  private refused: { readonly status: number; readonly headers: Headers; body: string } | undefined;
  private answering = false;
  private over = false;
  private giveUp: NodeJS.Timeout | undefined;

  constructor(private readonly options: RelayOptions) {
    this.outcome.promise.catch(() => {}); // reported by `started` or by `to`
    options.signal.addEventListener('abort', this.abort);
  }

  /** Resolves when there is something to hand on, or all has come. @throws UpstreamFailure when nothing has */
  get started(): Promise<void> {
    return this.begin.promise;
  }

  /** Hands on what has come and what comes. @throws UpstreamFailure when the answer breaks off */
  to(receiver: EventReceiver): Promise<void> {
    this.receiver = receiver;
    try {
      for (const each of this.early) {
        if (each instanceof Uint8Array) this.pass(each);
        else this.pass(NO_EVENTS, each);
      }
    } catch (error) {
      this.controller?.abort(error as Error);
      throw error;
    }
    return this.outcome.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.options.signal.aborted) this.abort();
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    this.answering = true;
    if (status !== 200) this.refused = { status, headers, body: '' };
  }

  onResponseData(_: unknown, piece: Uint8Array): void {
    const { refused } = this;
    if (!refused) this.attempt(() => this.options.chunks.accept(piece, this.pass));
    else if (refused.body.length < MAX_ERROR_BODY) refused.body += String(piece);
  }

  onResponseEnd(): void {
    if (!this.refused) this.attempt(() => this.options.chunks.end(this.pass));
    this.finish();
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(error);
  }

  private readonly abort = (): void => this.controller?.abort(this.options.signal.reason);

  private readonly pass = (events: Uint8Array, search?: SearchNote): void => {
    if (this.receiver === undefined) {
      this.early.push(search ?? events);
      this.begin.resolve();
      return;
    }
    const room = this.receiver(events, search);
    if (room === undefined) return;
    this.controller?.pause();
    void room.then(() => this.controller?.resume());
  };

  private attempt(step: () => void): void {
    if (this.over) return;
    try {
      step();
      if (!this.options.chunks.ended) return;
      this.finish();
      this.giveUp = setTimeout(() => this.controller?.abort(new Error('the body has no end')), RUN_OUT_MS);
    } catch (error) {
      this.finish(error);
      this.controller?.abort(error as Error);
    }
  }

  /** Behind its end marker a body is read to its end, which lets its connection be used again. */
  private finish(error?: unknown): void {
    clearTimeout(this.giveUp);
    if (this.over) return;
    this.over = true;
    this.options.signal.removeEventListener('abort', this.abort);
    const failure = this.failure(error);
    if (failure) {
      this.begin.reject(failure);
      this.outcome.reject(failure);
    } else {
      this.begin.resolve();
      this.outcome.resolve();
    }
  }

  private failure(error: unknown): UpstreamFailure | undefined {
    const { refused, options } = this;
    if (refused) return options.refusalOf(refused.status, refused.headers, refused.body);
    return error === undefined ? undefined : options.failureOf(error, this.answering);
  }
}
