/**
 * Translates Anthropic's server-sent events to OpenAI's chunks. Deltas of text, thinking and arguments, which are
 * nearly all events, are usually not parsed: their JSON string is copied unchanged.
 */
import {
  type CompletionIdentity,
  type FailureCode,
  formatSseEvent,
  type ReportedBill,
  UpstreamError,
} from '#application';
import type { Usage } from '#domain';
import {
  type ClassifyError,
  classifyCommonError,
  MESSAGE_RATE_LIMITED,
  toErrorReport,
} from '../../http/error-rules.ts';
import { MESSAGE_TIMEOUT } from '../../http/json-http-client.ts';
import { parseLatin1Event, toLatin1Json } from '../../http/latin1.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';
import { EventTranslator } from '../../http/stream-relay.ts';
import {
  type AnthropicContentBlock,
  type Citation,
  isReasoning,
  type MessageStop,
  toChoiceEnd,
  toReasoningDetail,
} from './blocks.ts';
import { JsonTextFilter } from './json-text.ts';
import { mergeAnthropicUsage, parseAnthropicUsage } from './usage.ts';

/** A content delta as Anthropic serialises it, with the padding that hides its size. Any other format is parsed. */
const CONTENT_DELTA =
  /^\{"type":"content_block_delta","index":(\d+),"delta":\{"type":"(?:text|thinking|input_json)_delta","(text|thinking|partial_json)":"([^"\\]*(?:\\.[^"\\]*)*)"\s*\}\s*\}$/;

/** Longer events are parsed instead of matched, because the pattern could exhaust the stack of the regex engine. */
const MAX_MATCHED_CHARACTERS = 64 * 1024;

/** Errors within a stream that have their own code. All others are reported as `upstream_error`. */
const STREAM_ERRORS: ReadonlyMap<unknown, readonly [FailureCode, string]> = new Map([
  ['rate_limit_error', ['rate_limited', MESSAGE_RATE_LIMITED]],
  ['timeout_error', ['timeout', MESSAGE_TIMEOUT]],
]);

export type AnthropicBlockKind = 'text' | 'thinking' | 'partial_json';

export interface AnthropicEvent {
  readonly type?: string;
  readonly index?: number;
  readonly message?: { readonly usage?: unknown };
  readonly content_block?: AnthropicContentBlock;
  readonly delta?: {
    readonly text?: string;
    readonly thinking?: string;
    readonly partial_json?: string;
    readonly signature?: string;
    readonly citation?: Citation;
  } & { readonly [K in keyof MessageStop]?: MessageStop[K] | null };
  readonly usage?: unknown;
  readonly error?: { readonly type?: unknown; readonly message?: unknown };
}

/** A block that has started. */
interface OpenBlock {
  readonly start: AnthropicContentBlock;
  /** Index among the tool calls, or among the reasoning blocks, of the completion. */
  readonly at: number;
  /** The thinking or the arguments: the content of a JSON string, in Latin-1 as received. Empty for a text block. */
  text: string;
  signature: string;
}

/** How errors, the bill and the text of the provider are read. */
export interface AnthropicReaders {
  readonly classifyError?: ClassifyError;
  readonly billFormat?: BillFormat;
  /** Whether the text is JSON, from which a code fence is removed. */
  readonly expectsJson?: boolean;
}

export class AnthropicEventTranslator extends EventTranslator {
  private readonly head: string;
  private readonly classifyError: ClassifyError;
  private readonly billFormat: BillFormat;
  private readonly blocks = new Map<number, OpenBlock>();
  private hasSentRole: boolean;
  private deliveredJson = '';
  /** Characters of `deliveredJson` that were not forwarded. */
  private hiddenLength = 0;
  private callCount = 0;
  private reasoningBlocks = 0;
  private usageAtStart: unknown;
  private reportedUsage: Usage | undefined;
  private bill: ReportedBill = {};
  private upstreamId: string | undefined;

  private readonly jsonText: JsonTextFilter | undefined;

  /** Number of reasoning blocks of earlier calls for the same turn. */
  private readonly earlierReasoningBlocks: number;

  /**
   * @param hidesReasoning whether the model's reasoning is left out
   * @param paused content of the turn that the completion continues
   */
  constructor(
    { id, model, provider, created }: CompletionIdentity,
    private readonly hidesReasoning = false,
    { classifyError = classifyCommonError, billFormat = {}, expectsJson = false }: AnthropicReaders = {},
    paused: readonly AnthropicContentBlock[] = [],
  ) {
    super();
    this.classifyError = classifyError;
    this.billFormat = billFormat;
    this.jsonText = expectsJson ? new JsonTextFilter() : undefined;
    this.earlierReasoningBlocks = paused.filter(isReasoning).length;
    this.hasSentRole = paused.some((block) => block.type === 'text' || (!hidesReasoning && isReasoning(block)));
    const chunk = { id, object: 'chat.completion.chunk', created, model, provider };
    this.head = `${toLatin1Json(chunk).slice(0, -1)},"choices":[{"index":0,"delta":`;
  }

  /** Undefined before the end, because the output tokens at the start are preliminary. */
  usage(): Usage | undefined {
    return this.reportedUsage;
  }

  override getInputUsage(): Usage | undefined {
    return parseAnthropicUsage(this.usageAtStart);
  }

  vendorId(): string | undefined {
    return this.upstreamId;
  }

  reportedBill(): ReportedBill {
    return this.bill;
  }

  getDeliveredText(): string {
    return unescapeJsonText(this.deliveredJson);
  }

  getMaxGeneratedTokens(): number {
    return this.deliveredJson.length;
  }

  override get isGenerating(): boolean {
    return this.reasoningBlocks > 0 || super.isGenerating;
  }

  hasForwarded(): boolean {
    return this.deliveredJson.length > this.hiddenLength;
  }

  protected translateEvent(json: string): string {
    const match = json.length > MAX_MATCHED_CHARACTERS ? null : CONTENT_DELTA.exec(json);
    if (match) return this.handleContent(Number(match[1]), match[2] as AnthropicBlockKind, match[3] as string);
    return this.handleEvent(parseLatin1Event(json));
  }

  private handleEvent({ type, index = 0, message, content_block, delta, usage, error }: AnthropicEvent): string {
    switch (type) {
      case 'message_start':
        this.usageAtStart = message?.usage;
        this.upstreamId = parseProviderRequestId(message);
        return '';
      case 'content_block_start':
        return content_block ? this.handleBlockStart(index, content_block) : '';
      case 'content_block_delta':
        return delta ? this.handleDelta(index, delta) : '';
      case 'content_block_stop':
        return this.handleBlockStop(index);
      case 'message_delta':
        this.recordUsage(usage);
        return delta?.stop_reason ? this.finish({ ...delta, stop_reason: delta.stop_reason }) : '';
      case 'message_stop':
        this.hasEndMarker = true;
        return '';
      case 'error':
        throw this.classifyError(toErrorReport({ error })) ?? toStreamError(error);
      default:
        return ''; // `ping`, and types that Anthropic may add later
    }
  }

  /** @param usage reported at the end of the stream */
  protected recordUsage(usage: unknown): void {
    const merged = mergeAnthropicUsage(this.usageAtStart, usage);
    this.reportedUsage = parseAnthropicUsage(merged) ?? this.reportedUsage;
    this.bill = parseReportedBill({ usage: merged }, this.billFormat);
  }

  protected handleDelta(
    index: number,
    { text, thinking, partial_json, signature }: NonNullable<AnthropicEvent['delta']>,
  ): string {
    const block = this.blocks.get(index);
    if (signature !== undefined && block) block.signature += signature;
    if (text !== undefined) return this.handleContent(index, 'text', escapeJsonText(text));
    if (thinking !== undefined) return this.handleContent(index, 'thinking', escapeJsonText(thinking));
    return partial_json === undefined ? '' : this.handleContent(index, 'partial_json', escapeJsonText(partial_json));
  }

  protected handleBlockStart(index: number, start: AnthropicContentBlock): string {
    const isCall = start.type === 'tool_use';
    const at = isCall ? this.callCount++ : isReasoning(start) ? this.countReasoningBlock() : 0;
    this.blocks.set(index, { start, at, text: '', signature: '' });
    if (start.type === 'text') return this.handleContent(index, 'text', escapeJsonText(start.text));
    if (start.type === 'thinking') return this.handleContent(index, 'thinking', escapeJsonText(start.thinking));
    if (start.type !== 'tool_use') return '';
    const { id, name } = start;
    this.deliveredJson += escapeJsonText(name);
    return this.formatChunk(
      toLatin1Json({ tool_calls: [{ index: at, id, type: 'function', function: { name, arguments: '' } }] }),
    );
  }

  /** Returns the index of the new block. */
  private countReasoningBlock(): number {
    return this.earlierReasoningBlocks + this.reasoningBlocks++;
  }

  /** @param text the content of a JSON string */
  protected handleContent(index: number, kind: AnthropicBlockKind, text: string): string {
    const block = this.blocks.get(index);
    if (text === '') return '';
    this.deliveredJson += text;
    if (kind === 'text') return this.toTextChunk(text);
    if (block) block.text += text;
    if (kind === 'thinking' && this.hidesReasoning) this.hiddenLength += text.length;
    if (kind === 'thinking') return this.hidesReasoning ? '' : this.formatChunk(`{"reasoning":"${text}"}`);
    return this.toArgumentsChunk(block?.at ?? 0, text);
  }

  private toTextChunk(text: string): string {
    const { jsonText } = this;
    if (!jsonText) return this.formatChunk(`{"content":"${text}"}`);
    const forwarded = escapeJsonText(jsonText.push(unescapeJsonText(text)));
    this.hiddenLength += text.length - forwarded.length;
    return forwarded === '' ? '' : this.formatChunk(`{"content":"${forwarded}"}`);
  }

  private flushText(): string {
    const rest = this.jsonText?.flush() ?? '';
    return rest === '' ? '' : this.toDeltaChunk({ content: rest });
  }

  private toArgumentsChunk(at: number, text: string): string {
    return this.formatChunk(`{"tool_calls":[{"index":${at},"function":{"arguments":"${text}"}}]}`);
  }

  protected handleBlockStop(index: number): string {
    const block = this.blocks.get(index);
    this.blocks.delete(index);
    if (!block) return '';
    const { start, at, text, signature } = block;
    // The deltas of a call without arguments are missing or empty, but OpenAI's clients expect JSON.
    if (start.type === 'tool_use')
      return text === '' ? this.toArgumentsChunk(at, escapeJsonText(JSON.stringify(start.input ?? {}))) : '';
    if (this.hidesReasoning) return '';
    if (start.type === 'redacted_thinking') {
      return this.formatChunk(toLatin1Json({ reasoning_details: [toReasoningDetail(at, start)] }));
    }
    if (start.type !== 'thinking') return '';
    const detail = toLatin1Json(
      toReasoningDetail(at, { ...start, thinking: '', signature: signature || start.signature }),
    );
    return this.formatChunk(`{"reasoning_details":[${detail.replace('"text":""', () => `"text":"${text}"`)}]}`);
  }

  protected toDeltaChunk(delta: object): string {
    return this.formatChunk(toLatin1Json(delta));
  }

  protected finish(stop: MessageStop): string {
    this.hasFinishReason = true;
    const { finish_reason, ...fields } = toChoiceEnd(stop);
    const explanation = fields.stop_details?.explanation ?? undefined;
    const rest = Object.keys(fields).length === 0 ? '' : `,${toLatin1Json(fields).slice(1, -1)}`;
    return this.flushText() + this.formatChunk(toLatin1Json({ refusal: explanation }), `"${finish_reason}"${rest}`);
  }

  /**
   * Sends the role only together with the first other chunk, so that nothing was forwarded if the provider fails before
   * that chunk.
   */
  private formatChunk(delta: string, finish = 'null'): string {
    const chunk = formatSseEvent(`${this.head}${delta},"finish_reason":${finish}}]}`);
    if (this.hasSentRole) return chunk;
    this.hasSentRole = true;
    return formatSseEvent(`${this.head}{"role":"assistant","content":""},"finish_reason":null}]}`) + chunk;
  }
}

/** Returns the text as the content of a JSON string, without quotes and in Latin-1. */
function escapeJsonText(text = ''): string {
  return toLatin1Json(text).slice(1, -1);
}

/** Reverts `escapeJsonText`. Invalid JSON is returned unchanged, which is sufficient for counting. */
function unescapeJsonText(text: string): string {
  try {
    return JSON.parse(`"${Buffer.from(text, 'latin1').toString('utf8')}"`);
  } catch {
    return text; // invalid JSON
  }
}

function toStreamError(error: AnthropicEvent['error']): UpstreamError {
  const [code, message] = STREAM_ERRORS.get(error?.type) ?? ['upstream_error', 'The provider ended the response early'];
  return new UpstreamError(code, message);
}
