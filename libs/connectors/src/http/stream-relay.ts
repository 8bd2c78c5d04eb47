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
const RUN_OUT_MS = 1_000;
/** How long an answer whose receiver was slow is read on when its time is up: what was made lies between, with its usage at the end. */
const CATCH_UP_MS = 1_000;
/** A refusal is read up to this many bytes, and no further. */
export const MAX_REFUSAL = 64 * 1024;

export type Headers = Readonly<Record<string, unknown>>;

/** Takes whole events, or a search that happened behind those before. */
export type ForwardEvents = (events: Uint8Array, search?: SearchStatus) => void;

/**
 * Reads the server-sent events of a protocol, sends on what each becomes, and knows of the answer what the gateway must
 * know. Bytes are handled as Latin-1 text, which keeps them whatever their encoding and wherever a piece ends.
 */
export abstract class EventTranslator {
  /** The end marker has come; what follows it is not looked at. */
  protected marked = false;
  /** The answer has said why it ends, though its end marker may be missing. */
  protected finished = false;
  private readonly reader = new SseParser();

  /** What is passed on of the data of one event: events in our shape, or nothing. @throws UpstreamError for an error */
  protected abstract handle(data: string): string;
  abstract usage(): Usage | undefined;
  /** What the upstream calls the answer; undefined before it has said so. */
  abstract vendorId(): string | undefined;
  abstract deliveredText(): string;
  /** The bytes of that text, or more: no token has less than one. Asked with every piece of a metered answer. */
  abstract generatedAtMost(): number;
  /** Whether anything of the text was passed on. */
  abstract hasTold(): boolean;

  /** Whether anything was generated, be it nothing that can be read. */
  get generating(): boolean {
    return this.deliveredText() !== '';
  }

  /** Whether the answer is complete, whatever follows in the body. */
  get ended(): boolean {
    return this.marked;
  }

  /**
   * Takes the next piece of the body, wherever it ends; `pass` gets whole events.
   * @throws UpstreamError when the upstream reports an error, or an event has no end, after what came before it has been passed on
   */
  accept(piece: Uint8Array, pass: ForwardEvents): void {
    this.translate(this.reader.read(decodeLatin1(piece)), pass);
    if (this.reader.pendingCharacters > MAX_EVENT_CHARACTERS)
      throw new UpstreamError('answer_too_long', 'The upstream sent an event that is too long');
  }

  /** @throws UpstreamError when the body has ended and the answer has not */
  end(pass: ForwardEvents): void {
    const { rest } = this.reader;
    if (rest.trim() !== '') this.translate([rest], pass);
    if (this.marked || this.finished) return;
    throw new UpstreamError('upstream_error', 'The upstream ended the stream before the answer was complete');
  }

  protected translate(events: readonly string[], pass: ForwardEvents): void {
    let out = '';
    try {
      for (const event of events) {
        if (this.marked) break;
        const data = parseSseData(event);
        if (data === SSE_DONE) this.marked = true;
        else if (data !== undefined) out += this.handle(data);
      }
    } finally {
      if (out !== '') pass(Buffer.from(out, 'latin1')); // what came before an event that broke off the answer
    }
  }
}

export interface RelayOptions {
  readonly translator: EventTranslator;
  readonly signal: AbortSignal;
  /** Longest silence once anything has been generated: before that only the signal bounds it, since models think. */
  readonly idleTimeoutMs: number | undefined;
  /** What an answer with another status than 200 means. */
  refusalOf(status: number, headers: Headers, body: string): UpstreamError;
  /** What a connection error means: whether the answer had started makes a difference. */
  failureOf(error: unknown, started: boolean): UpstreamError;
}

/**
 * Receives a streamed answer and hands it on, at undici's lowest level: a piece is received, translated and sent in one
 * go, and only a receiver without room stops the reading. Bodies as streams would cost more than all the rest.
 */
export class StreamRelay implements Dispatcher.DispatchHandler {
  private readonly begin = Promise.withResolvers<void>();
  private readonly outcome = Promise.withResolvers<void>();
  private readonly early: (Uint8Array | SearchStatus)[] = [];
  private controller: Dispatcher.DispatchController | undefined;
  private receiver: SseEventSink | undefined;
  private refused: { readonly status: number; readonly headers: Headers; body: string } | undefined;
  private answering = false;
  private over = false;
  private giveUp: NodeJS.Timeout | undefined;
  private silence: NodeJS.Timeout | undefined;
  /** The receiver has no room: then the silence is ours. */
  private full = false;
  /** The time is up, and what is still read is for nobody but the bill. */
  private catchingUp = false;
  private readonly quiet = new StreamIdleTimer();

  constructor(private readonly options: RelayOptions) {
    this.outcome.promise.catch(() => {}); // reported by `started` or by `to`
    options.signal.addEventListener('abort', this.abort);
  }

  /** Resolves when there is something to hand on, or all has come. @throws UpstreamError when nothing has */
  get started(): Promise<void> {
    return this.begin.promise;
  }

  /** Hands on what has come and what comes. @throws UpstreamError when the answer breaks off */
  to(receiver: SseEventSink): Promise<void> {
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

  /** For how long nothing came that can be seen of an answer. @param excusedMs so long the first piece may take */
  silentMs(excusedMs: number): number {
    return this.quiet.beyond(excusedMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.options.signal.aborted) this.abort();
  }

  onResponseStart(_: unknown, status: number, headers: Headers): void {
    if (status < 200) return; // the answer is yet to come
    this.answering = true;
    if (status === 200) return;
    this.refused = { status, headers, body: '' };
    this.boundSilence();
  }

  onResponseData(_: unknown, piece: Uint8Array): void {
    const { refused, silence } = this;
    const { translator } = this.options;
    silence?.refresh();
    if (refused) this.refuse(refused, piece);
    else this.attempt(() => translator.accept(piece, this.pass));
    if (this.over) return;
    if (!this.full) this.quiet.heard();
    if (this.quiet.broken || translator.generatedAtMost() === 0) return;
    this.quiet.break();
    this.boundSilence();
  }

  onResponseEnd(): void {
    if (!this.refused) this.attempt(() => this.options.translator.end(this.pass));
    this.finish();
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(error);
  }

  private refuse(refused: { body: string }, piece: Uint8Array): void {
    refused.body += String(piece);
    if (refused.body.length <= MAX_REFUSAL) return;
    this.finish();
    this.controller?.abort(new Error('a refusal is not read any further'));
  }

  private readonly abort = (): void => {
    const end = () => this.controller?.abort(this.options.signal.reason);
    if (!this.full) return void end();
    this.catchingUp = true;
    this.giveUp = setTimeout(end, CATCH_UP_MS);
    this.readOn();
  };

  private readonly pass = (events: Uint8Array, search?: SearchStatus): void => {
    if (this.catchingUp) return;
    if (this.receiver === undefined) {
      this.early.push(search ?? events);
      this.begin.resolve();
      return;
    }
    const room = this.receiver(events, search);
    if (room === undefined) return;
    this.full = true;
    this.quiet.wait(true);
    this.controller?.pause();
    void room.then(() => this.readOn());
  };

  private readOn(): void {
    if (!this.full) return;
    this.full = false;
    this.quiet.wait(false);
    this.silence?.refresh();
    this.controller?.resume();
  }

  private boundSilence(): void {
    const { idleTimeoutMs } = this.options;
    if (idleTimeoutMs !== undefined && !this.over) this.silence ??= setTimeout(this.fallenSilent, idleTimeoutMs);
  }

  private readonly fallenSilent = (): void => {
    if (this.full) this.silence?.refresh();
    else this.controller?.abort(new UpstreamError('timeout', 'The upstream took too long'));
  };

  private attempt(step: () => void): void {
    if (this.over) return;
    try {
      step();
      if (!this.options.translator.ended) return;
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
    clearTimeout(this.silence);
    if (this.over) return;
    this.over = true;
    this.quiet.wait(true);
    this.options.signal.removeEventListener('abort', this.abort);
    const failure = this.failure(this.catchingUp ? this.options.signal.reason : error);
    if (failure) {
      this.begin.reject(failure);
      this.outcome.reject(failure);
    } else {
      this.begin.resolve();
      this.outcome.resolve();
    }
  }

  private failure(error: unknown): UpstreamError | undefined {
    const { refused, options } = this;
    if (refused) return options.refusalOf(refused.status, refused.headers, refused.body);
    return error === undefined ? undefined : options.failureOf(error, this.answering);
  }
}

export function decodeLatin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
