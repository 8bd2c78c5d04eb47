/**
 * The streams of several rounds as one: what is said passes as it comes, and calls of the search tool, the ends of
 * rounds and further roles are held back.
 */

import type { CompletionIdentity } from '../../providers/provider.ts';
import type { JsonObject } from '../../wire/json-object.ts';
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

interface CallPiece extends JsonObject {
  readonly index?: number;
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

/** Between what was said before a search and after it. */
const GAP = '\n\n';
/** Everything else is text, and passes unchanged. */
const LOOKED_INTO = /"(?:tool_calls|role|reasoning_details)"|"finish_reason":\s*"/;

export class RoundEvents {
  /** Whether the client has been sent any part of an answer. */
  delivered = false;
  private hasRole = false;
  private hasText = false;
  /** Words, reasoning and calls of this round. */
  private content = '';
  private reasoningDetails: unknown[] = [];
  private calls = new Map<number, { id: string; arguments: string }>();
  /** The client's calls: where they stand among its own, by where they stand among all. */
  private clientCalls = new Map<number, number>();
  /** The chunk that ends the round, without what it says. */
  private end: Chunk | undefined;
  private finish: string | undefined;

  /** @param tool the name of the search tool */
  constructor(
    private readonly identity: CompletionIdentity,
    private readonly tool: string,
  ) {}

  /** What is passed on of whole events; undefined for nothing. @throws UpstreamError when one cannot be read */
  pass(events: Uint8Array): Uint8Array | undefined {
    const out = parseSseEvents(events)
      .map((data) => this.passOne(data))
      .join('');
    return out === '' ? undefined : Buffer.from(out);
  }

  /** What the round has said; what comes then is of the next one. */
  endRound(): RoundOutput {
    const { content, reasoningDetails, finish } = this;
    const calls = [...this.calls.values()].map((call, i): SearchCall => ({ ...call, id: call.id || `search_${i}` }));
    const said = { content, reasoningDetails, calls, callsClient: this.clientCalls.size > 0, finish };
    if (content !== '') this.hasText = true;
    this.content = '';
    this.reasoningDetails = [];
    this.calls = new Map();
    this.clientCalls = new Map();
    return said;
  }

  /** The end of the answer, in the words of its last round. */
  finished(reason: string): Uint8Array {
    const [choice] = this.end?.choices ?? [];
    if (!choice) return createChunkEvent(this.identity, { delta: {}, finish_reason: reason });
    return Buffer.from(eventOf({ ...this.end, choices: [{ ...choice, finish_reason: reason }] }));
  }

  private passOne(data: string): string {
    const chunk = parseEventJson(data) as Chunk;
    const [choice] = chunk.choices ?? [];
    if (!choice) return formatSseEvent(data);
    const before = this.content;
    const { content } = choice.delta ?? {};
    if (typeof content === 'string') this.content += content;
    const gap = before === '' && this.content !== '' && this.hasText;
    const asItIs = !gap && !LOOKED_INTO.test(data);
    const delta = asItIs ? (choice.delta ?? {}) : this.strippedOf(choice.delta ?? {}, gap);
    this.delivered ||= Object.entries(delta).some(([field, value]) => field !== 'role' && isSaid(value));
    if (asItIs) return formatSseEvent(data);
    const { finish_reason } = choice;
    if (typeof finish_reason === 'string') {
      this.finish = finish_reason;
      this.end = { ...chunk, choices: [{ ...choice, delta: {} }] };
    }
    if (Object.keys(delta).length === 0) return '';
    const { native_finish_reason: _, ...rest } = choice;
    return eventOf({ ...chunk, choices: [{ ...rest, delta, finish_reason: null }] });
  }

  private strippedOf({ role, content, refusal, tool_calls, ...rest }: Delta, gap: boolean): Delta {
    const stripped: Record<string, unknown> = { ...rest };
    const calls = Array.isArray(tool_calls) ? (tool_calls as CallPiece[]).flatMap((each) => this.clientCall(each)) : [];
    if (Array.isArray(rest.reasoning_details)) this.reasoningDetails.push(...rest.reasoning_details);
    if (role !== undefined && !this.hasRole) {
      this.hasRole = true;
      stripped.role = role;
      stripped.content = '';
    }
    if (isSaid(content)) stripped.content = gap ? GAP + content : content;
    if (isSaid(refusal)) stripped.refusal = refusal;
    if (calls.length > 0) stripped.tool_calls = calls;
    return stripped;
  }

  /** A piece of a call as the client gets it: none of a search. */
  private clientCall(piece: CallPiece): readonly CallPiece[] {
    const { index = 0, id, function: called } = piece;
    const search = this.calls.get(index);
    if (search) {
      search.arguments += called?.arguments ?? '';
      return [];
    }
    const known = this.clientCalls.get(index);
    if (known === undefined && called?.name === this.tool) {
      this.calls.set(index, { id: id ?? '', arguments: called.arguments ?? '' });
      return [];
    }
    const at = known ?? this.clientCalls.size;
    this.clientCalls.set(index, at);
    return [{ ...piece, index: at }];
  }
}

function isSaid(value: unknown): boolean {
  return value !== '' && value !== null && value !== undefined;
}

function eventOf(chunk: Chunk): string {
  return formatSseEvent(JSON.stringify(chunk));
}
