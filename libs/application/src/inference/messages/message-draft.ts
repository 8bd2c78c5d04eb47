/** Anthropic's shape of a message, while it is made out of the choices of a chat answer. */
import { quantityOf } from '#domain';
import { usdNumber } from '#kernel';
import type { Receipt } from '../../paying/purchase.ts';
import type { Source } from '../vocabulary/answers.ts';
import { costDetails } from '../vocabulary/cost-details.ts';
import type { ChatDelta, TypedEvent } from '../vocabulary/event-client.ts';
import type { SearchNote } from '../vocabulary/web-search.ts';
import { MessageOutput } from './output.ts';
import type { Thoughts } from './request.ts';

/** A choice of a chat answer, in one piece or as a piece of it. */
interface ChatChoice {
  readonly message?: ChatDelta;
  readonly delta?: ChatDelta;
  readonly finish_reason?: string | null;
  /** The caller's word that ended the answer, where the vendor says which. */
  readonly stop_sequence?: unknown;
}

/** Why an answer ended, in Anthropic's words; one that is not known ends it as any other. */
const STOP_REASONS: Readonly<Record<string, string>> = { length: 'max_tokens', content_filter: 'refusal' };

/** Before anything is known of it. */
const NO_USAGE = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  service_tier: 'standard',
};

export class MessageDraft {
  private readonly output: MessageOutput;
  private finish = 'stop';
  private stopSequence: string | null = null;

  constructor(
    private readonly id: string,
    private model: string,
    thoughts: Thoughts,
  ) {
    this.output = new MessageOutput(id, thoughts);
  }

  answeredBy({ model }: Source): void {
    this.model = model;
  }

  /** A piece of the answer, or all of it. */
  accept(answer: Readonly<Record<string, unknown>>): readonly TypedEvent[] {
    // Only one choice is ever asked for.
    const [choice] = (answer.choices ?? []) as readonly ChatChoice[];
    if (!choice) return [];
    this.finish = choice.finish_reason ?? this.finish;
    if (typeof choice.stop_sequence === 'string') this.stopSequence = choice.stop_sequence;
    return this.output.accept(choice.message ?? choice.delta ?? {});
  }

  search(search: SearchNote): readonly TypedEvent[] {
    return this.output.search(search);
  }

  /** The first event. What the input came to is only known at the end. */
  started(): TypedEvent {
    return { type: 'message_start', message: this.wire([], { stop_reason: null, stop_sequence: null }, NO_USAGE) };
  }

  /** The last events. @param receipt what it came to, if it could be charged */
  ended(receipt: Receipt | undefined): readonly TypedEvent[] {
    const blocks = this.output.end();
    return [
      ...blocks,
      { type: 'message_delta', delta: this.stop, usage: this.usage(receipt) },
      { type: 'message_stop' },
    ];
  }

  /** All of it, once nothing more will come. */
  finished(receipt: Receipt): object {
    this.output.end();
    return this.wire(this.output.blocks, this.stop, this.usage(receipt));
  }

  private get stop() {
    const { finish, stopSequence: stop_sequence, output } = this;
    const byItself = output.callsFunctions ? 'tool_use' : stop_sequence === null ? 'end_turn' : 'stop_sequence';
    return { stop_reason: STOP_REASONS[finish] ?? byItself, stop_sequence };
  }

  private wire(content: readonly object[], stop: object, usage: object) {
    const { id, model } = this;
    return { id: `msg_${id}`, type: 'message', role: 'assistant', model, content, ...stop, usage };
  }

  private usage(receipt: Receipt | undefined) {
    const { searched } = this.output;
    const made = searched > 0 ? { server_tool_use: { web_search_requests: searched, web_fetch_requests: 0 } } : {};
    return { ...(receipt ? usageWire(receipt) : NO_USAGE), ...made };
  }
}

/** Usage with its cost, as Messages count it: the parts of the input stand beside each other. */
export function usageWire(receipt: Receipt) {
  const { usage, charged } = receipt;
  return {
    input_tokens: usage.input ?? 0,
    cache_creation_input_tokens: quantityOf('cacheWrite', usage),
    cache_read_input_tokens: quantityOf('cacheRead', usage),
    output_tokens: quantityOf('output', usage),
    output_tokens_details: { thinking_tokens: quantityOf('reasoning', usage) },
    service_tier: 'standard',
    cost: usdNumber(charged),
    cost_details: costDetails(receipt, ['input', 'output']),
  };
}
