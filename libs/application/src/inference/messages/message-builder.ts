/** Anthropic's shape of a message, while it is made out of the choices of a chat answer. */

import { type JsonObject } from '#kernel';
import type { SearchStatus } from '../../providers/web-search.ts';

import type { CompletionSource } from '../chat/completion-writer.ts';
import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import { MessageOutput } from './output.ts';
import type { ThinkingVisibility } from './request.ts';

/** A choice of a chat answer, in one piece or as a piece of it. */
interface ChatChoice {
  readonly message?: ChatDelta;
  readonly delta?: ChatDelta;
  readonly finish_reason?: string | null;
  /** The caller's word that ended the answer, where the vendor says which. */
  readonly stop_sequence?: unknown;
}

/** Why an answer ended, in Anthropic's words; one that is not known ends it as any other. */
const STOP_REASONS: ReadonlyMap<string, string> = new Map([
  ['length', 'max_tokens'],
  ['content_filter', 'refusal'],
]);

/** What a message came to, in Anthropic's words: `input_tokens`, `output_tokens` and whatever else is known. */
export type MessageUsage = JsonObject;

/** Before anything is known of it. */
const NO_USAGE: MessageUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  service_tier: 'standard',
};

export class MessageBuilder {
  private readonly output: MessageOutput;
  private finishReason = 'stop';
  private stopSequence: string | null = null;

  constructor(
    private readonly id: string,
    private model: string,
    thinkingVisibility: ThinkingVisibility,
  ) {
    this.output = new MessageOutput(id, thinkingVisibility);
  }

  setSource({ model }: Pick<CompletionSource, 'model'>): void {
    this.model = model;
  }

  /** A piece of the answer, or all of it. */
  accept(completion: Readonly<Record<string, unknown>>): readonly TypedEvent[] {
    // Only one choice is ever asked for.
    const [choice] = (completion.choices ?? []) as readonly ChatChoice[];
    if (!choice) return [];
    this.finishReason = choice.finish_reason ?? this.finishReason;
    if (typeof choice.stop_sequence === 'string') this.stopSequence = choice.stop_sequence;
    return this.output.accept(choice.message ?? choice.delta ?? {});
  }

  recordSearch(search: SearchStatus): readonly TypedEvent[] {
    return this.output.recordSearch(search);
  }

  /** The first event. What the input came to is only known at the end. What is sent from now on is not kept. */
  createStartEvent(): TypedEvent {
    this.output.retainsTexts = false;
    return {
      type: 'message_start',
      message: this.toMessageJson([], { stop_reason: null, stop_sequence: null }, NO_USAGE),
    };
  }

  /** The last events. */
  createEndEvents(usage: MessageUsage | undefined): readonly TypedEvent[] {
    const blocks = this.output.end();
    return [
      ...blocks,
      { type: 'message_delta', delta: this.stop, usage: this.addSearchUsage(usage) },
      { type: 'message_stop' },
    ];
  }

  /** All of it, once nothing more will come. */
  build(usage: MessageUsage | undefined): object {
    this.output.end();
    return this.toMessageJson(this.output.blocks, this.stop, this.addSearchUsage(usage));
  }

  private get stop() {
    const { finishReason, stopSequence: stop_sequence, output } = this;
    const byItself = output.callsFunctions ? 'tool_use' : stop_sequence === null ? 'end_turn' : 'stop_sequence';
    return { stop_reason: STOP_REASONS.get(finishReason) ?? byItself, stop_sequence };
  }

  private toMessageJson(content: readonly object[], stop: object, usage: MessageUsage) {
    const { id, model } = this;
    return { id: `msg_${id}`, type: 'message', role: 'assistant', model, content, ...stop, usage };
  }

  private addSearchUsage(usage = NO_USAGE): MessageUsage {
    const { searchCount } = this.output;
    const serverToolUse =
      searchCount > 0 ? { server_tool_use: { web_search_requests: searchCount, web_fetch_requests: 0 } } : {};
    return { ...usage, ...serverToolUse };
  }
}
