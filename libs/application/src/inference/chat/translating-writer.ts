/** Writes a chat as the typed events of another protocol: Anthropic's Messages API or OpenAI's Responses API. */
import { type JsonObject } from '#kernel';
import type { Receipt } from '../../billing/order.ts';
import type { SearchStatus } from '../../providers/web-search.ts';

import { parseEventJson, parseSseEvents } from '../../wire/sse.ts';
import type { CompletionSource, CompletionWriter } from './completion-writer.ts';

/** A chat message, or a chunk of one. */
export interface ChatDelta {
  readonly content?: unknown;
  readonly refusal?: unknown;
  readonly reasoning?: unknown;
  /** The name of `reasoning` at some providers. */
  readonly reasoning_content?: unknown;
  /** Reasoning with the signatures that its provider requires in later requests. */
  readonly reasoning_details?: unknown;
  readonly annotations?: unknown;
  readonly tool_calls?: unknown;
}

export interface TypedEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The HTTP response that the events are written to. */
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

/** Translates the events of a chat into those of another protocol, while the completion is generated. */
export interface EventTranslation {
  setSource(source: CompletionSource): void;
  /** Returns the events for a chunk of the completion. */
  accept(chunk: JsonObject): readonly TypedEvent[];
  recordSearch(search: SearchStatus): readonly TypedEvent[];
}

/** Receives the events of a chat, and sends the events that its translation returns for them. */
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

  /** @throws UpstreamError if an event cannot be parsed */
  write(events: Uint8Array): Promise<void> | undefined {
    if (!this.isListening) return undefined;
    return this.send(parseSseEvents(events).flatMap((data) => this.draft.accept(parseEventJson(data))));
  }

  writeSearch(search: SearchStatus): Promise<void> | undefined {
    return this.send(this.draft.recordSearch(search));
  }

  abstract end(receipt: Receipt | undefined, failure?: unknown): Promise<void> | void;

  /** Sends the events with which every response starts. */
  protected abstract announce(): void;

  protected abstract formatEvent(event: TypedEvent): string;

  protected send(events: readonly TypedEvent[]): Promise<void> | undefined {
    if (events.length === 0 || !this.isListening) return undefined;
    return this.output.write(Buffer.from(events.map((event) => this.formatEvent(event)).join('')));
  }
}
