/**
 * The streams of several rounds as one: what is said passes as it comes, and calls of the search tool, the ends of
 * rounds and further roles are held back.
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

/** Between what was said before a search and after it. */
const GAP = '\n\n';
/** Everything else is text, and passes unchanged. */
const REWRITTEN_EVENT = /"(?:tool_calls|role|reasoning_details)"|"finish_reason":\s*"/;

export class RoundEvents {
  /** Whether the client has been sent any part of an answer. */
  hasDelivered = false;
  private hasRole = false;
  private hasText = false;
  /** Words, reasoning and calls of this round. */
  private content = '';
  private reasoningDetails: unknown[] = [];
  private calls = new Map<number, { id: string; arguments: string }>();
  /** The client's calls: where they stand among its own, by where they stand among all. */
  private clientCalls = new Map<number, number>();
  /** The chunk that ends the round, without what it says. */
  private lastChunk: Chunk | undefined;
  private finishReason: string | undefined;

  /** @param tool the name of the search tool */
  constructor(
    private readonly identity: CompletionIdentity,
    private readonly tool: string,
  ) {}

  /** What is passed on of whole events; undefined for nothing. @throws UpstreamError when one cannot be read */
  filterEvents(events: Uint8Array): Uint8Array | undefined {
    const out = parseSseEvents(events)
      .map((data) => this.filterEvent(data))
      .join('');
    return out === '' ? undefined : Buffer.from(out);
  }

  /** What the round has said; what comes then is of the next one. */
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

  /** The end of the answer, in the words of its last round. */
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

  /** A piece of a call as the client gets it: none of a search. */
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
