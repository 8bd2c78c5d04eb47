/**
 * Combines the streams of several rounds into one. Output is forwarded as it arrives. Calls of the search tool, the
 * ends of rounds, and every role but the first are removed.
 */

import { type JsonObject } from '#kernel';
import type { CompletionIdentity } from '../../providers/provider.ts';

import { formatSseEvent, parseEventJson, parseSseEvents } from '../../wire/sse.ts';
import { createChunkEvent } from '../chat/completion-writer.ts';
import type { RoundOutput, SearchCall } from './search-tool.ts';

interface Chunk extends JsonObject {
  readonly choices?: readonly Choice[];
}

interface Choice extends JsonObject {
  readonly delta?: Delta;
  readonly finish_reason?: string | null;
}

interface Delta extends JsonObject {
  readonly role?: unknown;
  readonly content?: unknown;
  readonly tool_calls?: unknown;
  readonly reasoning_details?: unknown;
}

interface CallChunk extends JsonObject {
  readonly index?: number;
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

/** Separates the text before a search from the text after it. */
const GAP = '\n\n';
/** Events without these fields are forwarded unchanged, unless a separator must be inserted before their text. */
const REWRITTEN_EVENT = /"(?:tool_calls|role|reasoning_details)"|"finish_reason":\s*"/;

export class RoundEvents {
  /** Whether the client was sent any output. */
  hasDelivered = false;
  private hasRole = false;
  private hasText = false;
  /** Text of the current round. */
  private content = '';
  private reasoningDetails: unknown[] = [];
  private calls = new Map<number, { id: string; arguments: string }>();
  /** The client's tool calls: the index that the client gets, by the index among all calls. */
  private clientCalls = new Map<number, number>();
  /** The last chunk with a finish reason, without its output. */
  private lastChunk: Chunk | undefined;
  private finishReason: string | undefined;

  /** @param tool the name of the search tool */
  constructor(
    private readonly identity: CompletionIdentity,
    private readonly tool: string,
  ) {}

  /** Returns the events to forward; undefined for none. @throws UpstreamError if an event cannot be parsed */
  filterEvents(events: Uint8Array): Uint8Array | undefined {
    const out = parseSseEvents(events)
      .map((data) => this.filterEvent(data))
      .join('');
    return out === '' ? undefined : Buffer.from(out);
  }

  /** Returns the output of the current round and starts the next one. */
  endRound(): RoundOutput {
    const { content, reasoningDetails, finishReason } = this;
    const calls = [...this.calls.values()].map((call, i): SearchCall => ({ ...call, id: call.id || `search_${i}` }));
    const roundOutput = { content, reasoningDetails, calls, hasClientCalls: this.clientCalls.size > 0, finishReason };
    if (content !== '') this.hasText = true;
    this.content = '';
    this.reasoningDetails = [];
    this.calls = new Map();
    this.clientCalls = new Map();
    return roundOutput;
  }

  /** Creates the event that ends the completion, based on the last chunk with a finish reason, if there is one. */
  createEndEvent(reason: string): Uint8Array {
    const [choice] = this.lastChunk?.choices ?? [];
    if (!choice) return createChunkEvent(this.identity, { delta: {}, finish_reason: reason });
    return Buffer.from(formatChunkEvent({ ...this.lastChunk, choices: [{ ...choice, finish_reason: reason }] }));
  }

  private filterEvent(data: string): string {
    const chunk = parseEventJson(data) as Chunk;
    const [choice] = chunk.choices ?? [];
    if (!choice) return formatSseEvent(data);
    const before = this.content;
    const { content } = choice.delta ?? {};
    if (typeof content === 'string') this.content += content;
    const gap = before === '' && this.content !== '' && this.hasText;
    const isUnchanged = !gap && !REWRITTEN_EVENT.test(data);
    const delta = isUnchanged ? (choice.delta ?? {}) : this.stripDelta(choice.delta ?? {}, gap);
    this.hasDelivered ||= Object.entries(delta).some(([field, value]) => field !== 'role' && hasContent(value));
    if (isUnchanged) return formatSseEvent(data);
    const { finish_reason } = choice;
    if (typeof finish_reason === 'string') {
      this.finishReason = finish_reason;
      this.lastChunk = { ...chunk, choices: [{ ...choice, delta: {} }] };
    }
    if (Object.keys(delta).length === 0) return '';
    const { native_finish_reason: _, ...rest } = choice;
    return formatChunkEvent({ ...chunk, choices: [{ ...rest, delta, finish_reason: null }] });
  }

  private stripDelta({ role, content, refusal, tool_calls, ...rest }: Delta, gap: boolean): Delta {
    const stripped: Record<string, unknown> = { ...rest };
    const calls = Array.isArray(tool_calls) ? (tool_calls as CallChunk[]).flatMap((call) => this.filterCall(call)) : [];
    if (Array.isArray(rest.reasoning_details)) this.reasoningDetails.push(...rest.reasoning_details);
    if (role !== undefined && !this.hasRole) {
      this.hasRole = true;
      stripped.role = role;
      stripped.content = '';
    }
    if (hasContent(content)) stripped.content = gap ? GAP + content : content;
    if (hasContent(refusal)) stripped.refusal = refusal;
    if (calls.length > 0) stripped.tool_calls = calls;
    return stripped;
  }

  /** Returns a chunk of a call with the client's index; empty for a call of the search tool. */
  private filterCall(chunk: CallChunk): readonly CallChunk[] {
    const { index = 0, id, function: called } = chunk;
    const search = this.calls.get(index);
    if (search) {
      search.arguments += called?.arguments ?? '';
      return [];
    }
    const existingIndex = this.clientCalls.get(index);
    if (existingIndex === undefined && called?.name === this.tool) {
      this.calls.set(index, { id: id ?? '', arguments: called.arguments ?? '' });
      return [];
    }
    const at = existingIndex ?? this.clientCalls.size;
    this.clientCalls.set(index, at);
    return [{ ...chunk, index: at }];
  }
}

function hasContent(value: unknown): boolean {
  return value !== '' && value !== null && value !== undefined;
}

function formatChunkEvent(chunk: Chunk): string {
  return formatSseEvent(JSON.stringify(chunk));
}
