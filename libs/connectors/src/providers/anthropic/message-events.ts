/**
 * Anthropic's server-sent events on their way through, as OpenAI's chunks. Pieces of text, thinking and arguments, which
 * are nearly all that comes, are not parsed: the string goes from one JSON to the other as it stands.
 */
import { type CompletionIdentity, type FailureCode, formatSseEvent, UpstreamError } from '#application';
import type { Usage } from '#domain';
import { MESSAGE_RATE_LIMITED, MESSAGE_TIMEOUT } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { EventTranslator } from '../../http/stream-relay.ts';
import { type AnthropicContentBlock, type Citation, finishReason, reasoningDetail } from './blocks.ts';
import { mergeAnthropicUsage, parseAnthropicUsage } from './usage.ts';

/** A piece of content as Anthropic prints it, with the padding that hides its size; any other print is parsed. */
const PIECE =
  /^\{"type":"content_block_delta","index":(\d+),"delta":\{"type":"(?:text|thinking|input_json)_delta","(text|thinking|partial_json)":"([^"\\]*(?:\\.[^"\\]*)*)"\s*\}\s*\}$/;

/** Characters of an event that is matched; a pattern has no stack for the longest ones. */
const LONGEST_PIECE = 64 * 1024;

/** What an error within a stream means; every other one is the upstream's own trouble. */
const FAILURES: ReadonlyMap<unknown, readonly [FailureCode, string]> = new Map([
  ['rate_limit_error', ['rate_limited', MESSAGE_RATE_LIMITED]],
  ['timeout_error', ['timeout', MESSAGE_TIMEOUT]],
]);

export type AnthropicBlockKind = 'text' | 'thinking' | 'partial_json';

export interface Event {
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
    readonly stop_reason?: string | null;
    /** The caller's word that ended the answer; OpenAI's clients do not look for it. */
    readonly stop_sequence?: string | null;
  };
  readonly usage?: unknown;
  readonly error?: { readonly type?: unknown; readonly message?: unknown };
}

/** A block that has started. Texts are the inside of JSON strings, in Latin-1 as they came. */
interface OpenBlock {
  readonly start: AnthropicContentBlock;
  /** Which tool call of the answer, or which piece of its reasoning, this is. */
  readonly at: number;
  text: string;
  signature: string;
}

export class MessageEvents extends EventTranslator {
  private readonly head: string;
  private readonly blocks = new Map<number, OpenBlock>();
  private opened = false;
  private delivered = '';
  /** Characters of it that were not passed on. */
  private hidden = 0;
  private calls = 0;
  private thoughts = 0;
  private usageAtStart: unknown;
  private reported: Usage | undefined;
  private upstreamId: string | undefined;

  /** @param hidesReasoning nothing of the model's thoughts is passed on */
  constructor(
    { id, model, provider, created }: CompletionIdentity,
    private readonly hidesReasoning = false,
  ) {
    super();
    const chunk = { id, object: 'chat.completion.chunk', created, model, provider };
    this.head = `${latin1Of(chunk).slice(0, -1)},"choices":[{"index":0,"delta":`;
  }

  /** Known from the end: the figure for the output at the start is preliminary. */
  usage(): Usage | undefined {
    return this.reported;
  }

  vendorId(): string | undefined {
    return this.upstreamId;
  }

  deliveredText(): string {
    try {
      return JSON.parse(`"${Buffer.from(this.delivered, 'latin1').toString('utf8')}"`);
    } catch {
      return this.delivered; // not quite JSON, and good enough for counting
    }
  }

  generatedAtMost(): number {
    return this.delivered.length;
  }

  override get generating(): boolean {
    return this.thoughts > 0 || super.generating;
  }

  hasTold(): boolean {
    return this.delivered.length > this.hidden;
  }

  protected handle(json: string): string {
    const piece = json.length > LONGEST_PIECE ? null : PIECE.exec(json);
    if (piece) return this.piece(Number(piece[1]), piece[2] as AnthropicBlockKind, piece[3] as string);
    return this.parsed(parse(json));
  }

  private parsed({ type, index = 0, message, content_block, delta, usage, error }: Event): string {
    switch (type) {
      case 'message_start':
        this.usageAtStart = message?.usage;
        this.upstreamId = parseProviderRequestId(message);
        return '';
      case 'content_block_start':
        return content_block ? this.open(index, content_block) : '';
      case 'content_block_delta':
        return delta ? this.delta(index, delta) : '';
      case 'content_block_stop':
        return this.close(index);
      case 'message_delta':
        this.used(usage);
        return delta?.stop_reason ? this.finish(delta.stop_reason, delta.stop_sequence) : '';
      case 'message_stop':
        this.marked = true;
        return '';
      case 'error':
        throw failure(error);
      default:
        return ''; // `ping`, and what may be added: clients must expect it
    }
  }

  /** Takes what is known at the end of what was used. */
  protected used(usage: unknown): void {
    this.reported = parseAnthropicUsage(mergeAnthropicUsage(this.usageAtStart, usage)) ?? this.reported;
  }

  protected delta(index: number, { text, thinking, partial_json, signature }: NonNullable<Event['delta']>): string {
    const block = this.blocks.get(index);
    if (signature !== undefined && block) block.signature += signature;
    if (text !== undefined) return this.piece(index, 'text', inside(text));
    if (thinking !== undefined) return this.piece(index, 'thinking', inside(thinking));
    return partial_json === undefined ? '' : this.piece(index, 'partial_json', inside(partial_json));
  }

  protected open(index: number, start: AnthropicContentBlock): string {
    const isCall = start.type === 'tool_use';
    const isThought = start.type === 'thinking' || start.type === 'redacted_thinking';
    const at = isCall ? this.calls++ : isThought ? this.thoughts++ : 0;
    this.blocks.set(index, { start, at, text: '', signature: '' });
    if (start.type === 'text') return this.piece(index, 'text', inside(start.text));
    if (start.type === 'thinking') return this.piece(index, 'thinking', inside(start.thinking));
    if (start.type !== 'tool_use') return '';
    const { id, name } = start;
    this.delivered += inside(name);
    return this.chunk(
      latin1Of({ tool_calls: [{ index: at, id, type: 'function', function: { name, arguments: '' } }] }),
    );
  }

  /** @param text the inside of a JSON string */
  protected piece(index: number, kind: AnthropicBlockKind, text: string): string {
    const block = this.blocks.get(index);
    if (text === '') return '';
    this.delivered += text;
    if (kind === 'text') return this.chunk(`{"content":"${text}"}`);
    if (block) block.text += text;
    if (kind === 'thinking' && this.hidesReasoning) this.hidden += text.length;
    if (kind === 'thinking') return this.hidesReasoning ? '' : this.chunk(`{"reasoning":"${text}"}`);
    return this.argumentsPiece(block?.at ?? 0, text);
  }

  private argumentsPiece(at: number, text: string): string {
    return this.chunk(`{"tool_calls":[{"index":${at},"function":{"arguments":"${text}"}}]}`);
  }

  protected close(index: number): string {
    const block = this.blocks.get(index);
    this.blocks.delete(index);
    if (!block) return '';
    const { start, at, text, signature } = block;
    // A tool without arguments is called with no piece at all, and OpenAI's clients parse what they have got.
    if (start.type === 'tool_use')
      return text === '' ? this.argumentsPiece(at, inside(JSON.stringify(start.input ?? {}))) : '';
    if (this.hidesReasoning) return '';
    if (start.type === 'redacted_thinking') {
      return this.chunk(latin1Of({ reasoning_details: [reasoningDetail(at, start)] }));
    }
    if (start.type !== 'thinking') return '';
    const detail = latin1Of(reasoningDetail(at, { ...start, thinking: '', signature: signature || start.signature }));
    return this.chunk(`{"reasoning_details":[${detail.replace('"text":""', () => `"text":"${text}"`)}]}`);
  }

  /** A chunk with something that no block has said. */
  protected deltaChunk(delta: object): string {
    return this.chunk(latin1Of(delta));
  }

  private finish(stopReason: string, stopSequence?: string | null): string {
    this.finished = true;
    const word = stopSequence ? `,"stop_sequence":${latin1Of(stopSequence)}` : '';
    return this.chunk('{}', `"${finishReason(stopReason)}"${word}`);
  }

  /** The first one is preceded by the role: not sooner, so that an upstream that fails before it can be asked again. */
  private chunk(delta: string, finish = 'null'): string {
    const chunk = formatSseEvent(`${this.head}${delta},"finish_reason":${finish}}]}`);
    if (this.opened) return chunk;
    this.opened = true;
    return formatSseEvent(`${this.head}{"role":"assistant","content":""},"finish_reason":null}]}`) + chunk;
  }
}

function latin1Of(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('latin1');
}

/** A text as it stands between the quotes of JSON. */
function inside(text = ''): string {
  return latin1Of(text).slice(1, -1);
}

function parse(json: string): Event {
  try {
    return JSON.parse(Buffer.from(json, 'latin1').toString('utf8')) as Event;
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The upstream sent an event that is not JSON', { cause });
  }
}

function failure(error: Event['error']): UpstreamError {
  const [code, message] = FAILURES.get(error?.type) ?? ['upstream_error', 'The upstream broke off the answer'];
  return new UpstreamError(code, message);
}
