/** A client that hears of a chat in the typed events of another protocol: Anthropic's messages, OpenAI's responses. */
import { type JsonObject } from '#kernel';
import type { Receipt } from '../../billing/order.ts';
import type { SearchStatus } from '../../providers/web-search.ts';

import { parseEventJson, parseSseEvents } from '../../wire/sse.ts';
import type { CompletionSource, CompletionWriter } from './completion-writer.ts';

/** A piece of a chat message, or all of it. */
export interface ChatDelta {
  readonly content?: unknown;
  readonly refusal?: unknown;
  readonly reasoning?: unknown;
  /** The name that some upstreams have for `reasoning`. */
  readonly reasoning_content?: unknown;
  /** Reasoning with what its maker wants back of it. */
  readonly reasoning_details?: unknown;
  readonly annotations?: unknown;
  readonly tool_calls?: unknown;
}

export interface TypedEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Where events are sent. */
export interface SseOutput {
  readonly hasStarted: boolean;
  readonly disconnected: Promise<void>;
  readonly storesResponse: boolean;
  readonly isListening: boolean;
  begin(): void;
  startHeartbeat(): void;
  write(events: Uint8Array): Promise<void> | undefined;
  finish(events: string): void;
}

/** The answer in the other protocol, while it is made. */
export interface EventTranslation {
  setSource(source: CompletionSource): void;
  /** The events that a chunk of a chat becomes. */
  accept(chunk: JsonObject): readonly TypedEvent[];
  recordSearch(search: SearchStatus): readonly TypedEvent[];
}

/** Takes the events of a chat, and sends those of the other protocol: each as soon as it comes. */
export abstract class TranslatingWriter<Output extends SseOutput, Draft extends EventTranslation>
  implements CompletionWriter
{
  constructor(
    protected readonly output: Output,
    protected readonly draft: Draft,
  ) {}

  get hasStarted(): boolean {
    return this.output.hasStarted;
  }

  get disconnected(): Promise<void> {
    return this.output.disconnected;
  }

  get storesResponse(): boolean {
    return this.output.storesResponse;
  }

  get isListening(): boolean {
    return this.output.isListening;
  }

  startHeartbeat(): void {
    this.output.startHeartbeat();
  }

  begin(source: CompletionSource): void {
    this.draft.setSource(source);
    this.output.begin();
    this.announce();
  }

  /** @throws UpstreamError when an event cannot be read */
  write(events: Uint8Array): Promise<void> | undefined {
    if (!this.isListening) return undefined;
    return this.send(parseSseEvents(events).flatMap((data) => this.draft.accept(parseEventJson(data))));
  }

  writeSearch(search: SearchStatus): Promise<void> | undefined {
    return this.send(this.draft.recordSearch(search));
  }

  abstract end(receipt: Receipt | undefined, failure?: unknown): Promise<void> | void;

  /** Sends what every answer begins with. */
  protected abstract announce(): void;

  /** The event as it is sent. */
  protected abstract formatEvent(event: TypedEvent): string;

  protected send(events: readonly TypedEvent[]): Promise<void> | undefined {
    if (events.length === 0 || !this.isListening) return undefined;
    return this.output.write(Buffer.from(events.map((event) => this.formatEvent(event)).join('')));
  }
}
