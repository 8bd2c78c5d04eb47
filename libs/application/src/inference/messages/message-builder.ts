/** Builds a message of Anthropic's API from a chat completion or from its chunks. */

import { type JsonObject } from '#kernel';
import { parseStopDetails, type StopDetails } from '../../providers/stop-details.ts';
import type { SearchStatus } from '../../providers/web-search.ts';

import type { CompletionSource } from '../chat/completion-writer.ts';
import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import { type ContentBlock, MessageOutput } from './output.ts';
import type { ThinkingVisibility } from './request.ts';

/** A choice of a chat completion, or a chunk of one. */
interface ChatChoice {
  readonly message?: ChatDelta;
  readonly delta?: ChatDelta;
  readonly finish_reason?: string | null;
  /** The stop reason of the provider, if it has no equivalent in OpenAI's API. */
  readonly native_finish_reason?: unknown;
  /** The caller's stop sequence that ended the completion, if the provider reports it. */
  readonly stop_sequence?: unknown;
  /** Why the model refused to respond, if the provider is Anthropic. */
  readonly stop_details?: unknown;
}

/** The turn was paused and not continued: https://docs.claude.com/en/api/handling-stop-reasons */
const PAUSE_TURN = 'pause_turn';

/** Anthropic's stop reasons by finish reason. Any other finish reason is treated as a normal end. */
const STOP_REASONS: ReadonlyMap<string, string> = new Map([
  ['length', 'max_tokens'],
  ['content_filter', 'refusal'],
  [PAUSE_TURN, PAUSE_TURN],
]);

/** More characters of a refusal are not retained, because its explanation is truncated anyway. */
const MAX_REFUSAL_CHARACTERS = 4_096;

/** Usage in Anthropic's format: `input_tokens`, `output_tokens` and further fields. */
export type MessageUsage = JsonObject;

/** The input tokens of a usage: those that were neither read from the cache nor written to it, and the others. */
export interface InputUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  /** The cache writes by their lifetime. */
  readonly cache_creation: {
    readonly ephemeral_5m_input_tokens: number;
    readonly ephemeral_1h_input_tokens: number;
  };
  readonly cache_read_input_tokens: number;
}

const NO_INPUT: InputUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  cache_read_input_tokens: 0,
};

/** The usage while none is known. */
const NO_USAGE: MessageUsage = { ...NO_INPUT, output_tokens: 0, service_tier: 'standard' };

function omitEmptyCitations(block: ContentBlock): object {
  if (block.type !== 'text' || block.citations?.length !== 0) return block;
  const { type, text } = block;
  return { type, text };
}

export interface MessageBuilderOptions {
  readonly thinkingVisibility: ThinkingVisibility;
  /** Whether texts are retained. Texts of most streams are not, to save memory with many long messages at a time. */
  readonly retainsTexts: boolean;
}

export class MessageBuilder {
  private readonly output: MessageOutput;
  private finishReason = 'stop';
  private stopSequence: string | null = null;
  private stopDetails: StopDetails | undefined;
  /** The text with which a model of OpenAI refuses. It is also part of the message, because the model generated it. */
  private refusalText = '';

  constructor(
    private readonly id: string,
    private model: string,
    { thinkingVisibility, retainsTexts }: MessageBuilderOptions,
  ) {
    this.output = new MessageOutput(id, thinkingVisibility, retainsTexts);
  }

  get messageId(): string {
    return `msg_${this.id}`;
  }

  /** The content of a message that has ended, without texts that were not retained. */
  get content(): readonly object[] {
    return this.output.blocks.map(omitEmptyCitations);
  }

  setSource({ model }: Pick<CompletionSource, 'model'>): void {
    this.model = model;
  }

  /** Adds a chunk of the completion, or all of it. @returns the events to send for it */
  accept(completion: Readonly<Record<string, unknown>>): readonly TypedEvent[] {
    // Requests of this protocol always have one choice.
    const [choice] = (completion.choices ?? []) as readonly ChatChoice[];
    if (!choice) return [];
    const { finish_reason, native_finish_reason } = choice;
    const isPaused = finish_reason === 'length' && native_finish_reason === PAUSE_TURN;
    this.finishReason = (isPaused ? PAUSE_TURN : finish_reason) ?? this.finishReason;
    if (typeof choice.stop_sequence === 'string') this.stopSequence = choice.stop_sequence;
    const delta = choice.message ?? choice.delta ?? {};
    this.stopDetails ??= parseStopDetails(choice.stop_details);
    // Anthropic's explanation is not part of the message.
    if (this.stopDetails) return this.output.accept({ ...delta, refusal: null });
    if (typeof delta.refusal === 'string' && this.refusalText.length < MAX_REFUSAL_CHARACTERS)
      this.refusalText += delta.refusal;
    return this.output.accept(delta);
  }

  /** Adds a complete completion with its searches, which came between the reasoning and the text. */
  acceptComplete(completion: Readonly<Record<string, unknown>>, searches: readonly SearchStatus[]): void {
    const [choice] = (completion.choices ?? []) as readonly ChatChoice[];
    const { reasoning, reasoning_content, reasoning_details, ...message } = choice?.message ?? {};
    this.output.accept({ reasoning, reasoning_content, reasoning_details });
    for (const search of searches) this.output.recordSearch(search);
    if (choice) this.accept({ choices: [{ ...choice, message }] });
  }

  recordSearch(search: SearchStatus): readonly TypedEvent[] {
    return this.output.recordSearch(search);
  }

  /**
   * Creates the first event.
   * @param inputUsage what is known or estimated at the start; the usage at the end replaces it
   */
  createStartEvent(inputUsage: Partial<InputUsage> = {}): TypedEvent {
    const stop = { stop_reason: null, stop_sequence: null, stop_details: null };
    return { type: 'message_start', message: this.toMessageJson([], stop, { ...NO_USAGE, ...inputUsage }) };
  }

  /** Ends the message and creates its last events. */
  createEndEvents(usage: MessageUsage | undefined): readonly TypedEvent[] {
    const blocks = this.output.end();
    return [
      ...blocks,
      { type: 'message_delta', delta: this.stop, usage: this.addSearchUsage(usage) },
      { type: 'message_stop' },
    ];
  }

  /** Ends the message and returns its JSON object. */
  build(usage: MessageUsage | undefined): object {
    this.output.end();
    return this.toMessageJson(this.content, this.stop, this.addSearchUsage(usage));
  }

  private get stop() {
    const { finishReason, stopSequence: stop_sequence, output, refusalText } = this;
    const byItself = output.callsFunctions ? 'tool_use' : stop_sequence === null ? 'end_turn' : 'stop_sequence';
    const hasRefused = this.stopDetails !== undefined || refusalText !== '';
    const stop_reason = STOP_REASONS.get(finishReason) ?? (hasRefused ? 'refusal' : byItself);
    const generated = refusalText === '' ? undefined : { type: 'refusal', explanation: refusalText };
    const details = this.stopDetails ?? parseStopDetails(generated);
    return { stop_reason, stop_sequence, stop_details: stop_reason === 'refusal' ? (details ?? null) : null };
  }

  private toMessageJson(content: readonly object[], stop: object, usage: MessageUsage) {
    const { messageId: id, model } = this;
    return { id, type: 'message', role: 'assistant', model, content, ...stop, usage };
  }

  private addSearchUsage(usage = NO_USAGE): MessageUsage {
    const { searchCount } = this.output;
    const serverToolUse =
      searchCount > 0 ? { server_tool_use: { web_search_requests: searchCount, web_fetch_requests: 0 } } : {};
    return { ...usage, ...serverToolUse };
  }
}
