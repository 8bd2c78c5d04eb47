/**
 * A chat answer as the content blocks of a message, and the events that announce them: one block after the other, each
 * started, filled and stopped once. An answer in one piece goes the same way, as a single delta.
 *
 * Chats may fill several calls by turns; here one block is open at a time. What comes for a later one waits until the one
 * that is open is complete: a text when something else begins, a call when its arguments are JSON.
 */

import { isJsonObject, type JsonObject } from '#kernel';
import type { SearchStatus } from '../../providers/web-search.ts';

import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import { extractReasoning, type ReasoningBlock } from './reasoning.ts';
import type { ThinkingVisibility } from './request.ts';

interface TextBlock {
  readonly type: 'text';
  text: string;
  citations: JsonObject[] | null;
}

interface ThinkingBlock {
  readonly type: 'thinking';
  thinking: string;
  signature: string;
}

interface CallBlock {
  readonly type: 'tool_use' | 'server_tool_use';
  id: string;
  name: string;
  input: unknown;
}

/** Comes whole. */
interface CompleteBlock {
  readonly type: 'redacted_thinking' | 'web_search_tool_result';
  readonly [field: string]: unknown;
}

export type ContentBlock = TextBlock | ThinkingBlock | CallBlock | CompleteBlock;

/** A block and what is known of it. */
interface Segment<B extends ContentBlock = ContentBlock> {
  readonly block: B;
  /** As it is announced, before it is filled. */
  readonly getStartBlock: () => object;
  /** Its place in the message, once it is announced. */
  index: number;
  /** Deltas that wait for that. */
  pendingDeltas: JsonObject[];
  /** Of a call: JSON, once it is complete. */
  argumentsText: string;
  isEnded: boolean;
}

const SEARCH = 'web_search';

export class MessageOutput {
  /** As they stand in the message. */
  readonly blocks: ContentBlock[] = [];
  /** Searches of the web that were made. */
  searchCount = 0;
  /** Whether texts are kept: not where each piece of them is sent, since many long answers are made at a time. */
  retainsTexts = true;
  /** The first is open, the others wait. */
  private readonly queue: Segment[] = [];
  /** The functions that are called, by their index in the chat answer. */
  private readonly calls = new Map<number, Segment<CallBlock>>();
  /** By their place among the searches. */
  private readonly searches = new Map<number, string>();
  /** Sources that came before the text that they are sources of. */
  private citations: JsonObject[] = [];
  private events: TypedEvent[] = [];

  /** @param id what the ids of calls are made of that have none */
  constructor(
    private readonly id: string,
    private readonly thinkingVisibility: ThinkingVisibility,
  ) {}

  get callsFunctions(): boolean {
    return this.calls.size > 0;
  }

  /** Takes the next piece, and returns what it lets happen. */
  accept(delta: ChatDelta): readonly TypedEvent[] {
    const { content, refusal, reasoning, reasoning_content, reasoning_details, annotations, tool_calls } = delta;
    if (this.thinkingVisibility !== 'hidden')
      for (const reasoningBlock of extractReasoning(reasoning_details, reasoning ?? reasoning_content))
        this.appendReasoning(reasoningBlock);
    for (const text of [content, refusal]) if (isNonEmptyString(text)) this.appendText(text);
    for (const annotation of filterJsonObjects(annotations)) this.cite(annotation);
    for (const [at, toolCall] of filterJsonObjects(tool_calls).entries()) this.callTool(toolCall, at);
    return this.flushEvents();
  }

  /** Takes a search of the web. One that is reported only at its end starts there. */
  recordSearch({ at, query, state, results = [] }: SearchStatus): readonly TypedEvent[] {
    let id = this.searches.get(at);
    if (id === undefined) {
      id = `srvtoolu_${this.id}_${at}`;
      this.searches.set(at, id);
      const block: CallBlock = { type: 'server_tool_use', id, name: SEARCH, input: {} };
      this.applyDelta(this.append(block), { type: 'input_json_delta', partial_json: JSON.stringify({ query }) });
    }
    if (state !== 'searching') {
      if (state === 'completed') this.searchCount++;
      const content =
        state === 'completed'
          ? results.map(toSearchResultBlock)
          : { type: 'web_search_tool_result_error', error_code: 'unavailable' };
      this.append({ type: 'web_search_tool_result', tool_use_id: id, content });
    }
    return this.flushEvents();
  }

  /** Nothing more will come. */
  end(): readonly TypedEvent[] {
    while (this.queue.length > 0) this.closeFirst();
    return this.flushEvents();
  }

  private appendReasoning(reasoning: ReasoningBlock): void {
    if ('encrypted' in reasoning) return void this.append({ type: 'redacted_thinking', data: reasoning.encrypted });
    const { text, signature } = reasoning;
    const last = this.findLast('thinking');
    const open = last?.block.signature === '' ? last : undefined;
    // Some give all of a thought again together with its signature.
    const isRepeated = signature !== undefined && open?.block.thinking === text;
    const visibleText = this.thinkingVisibility === 'visible' && !isRepeated ? text : '';
    if (visibleText === '' && signature === undefined) return;
    const segment = open ?? (this.append({ type: 'thinking', thinking: '', signature: '' }) as Segment<ThinkingBlock>);
    if (visibleText !== '') this.applyDelta(segment, { type: 'thinking_delta', thinking: visibleText });
    if (signature !== undefined) this.applyDelta(segment, { type: 'signature_delta', signature });
  }

  private appendText(text: string): void {
    this.applyDelta(this.ensureTextSegment(), { type: 'text_delta', text });
  }

  private ensureTextSegment(): Segment {
    const last = this.findLast('text');
    if (last) return last;
    const segment = this.append({ type: 'text', text: '', citations: null });
    const { citations } = this;
    this.citations = [];
    for (const citation of citations) this.applyDelta(segment, { type: 'citations_delta', citation });
    return segment;
  }

  private cite({ type, url_citation }: JsonObject): void {
    if (type !== 'url_citation' || !isJsonObject(url_citation)) return;
    const { url, title, content } = url_citation;
    const cited_text = typeof content === 'string' ? content : '';
    const citation = { type: 'web_search_result_location', url, title: title ?? null, cited_text, encrypted_index: '' };
    const text = this.findLast('text');
    if (text) this.applyDelta(text, { type: 'citations_delta', citation });
    else this.citations.push(citation);
  }

  private callTool({ index, id, function: called }: JsonObject, position: number): void {
    const { name, arguments: args } = isJsonObject(called) ? called : {};
    const key = typeof index === 'number' ? index : position;
    const segment = this.calls.get(key) ?? this.createCallSegment(key);
    const { block } = segment;
    // A block is announced with both: until it has a name, it waits.
    if (isNonEmptyString(id) && segment.index < 0) block.id = id;
    if (isNonEmptyString(name) && block.name === '') block.name = name;
    if (segment === this.queue[0]) this.open(segment);
    if (!isNonEmptyString(args) || segment.isEnded) return;
    segment.argumentsText += args;
    this.applyDelta(segment, { type: 'input_json_delta', partial_json: args });
    this.advance();
  }

  private createCallSegment(key: number): Segment<CallBlock> {
    const segment = this.append({ type: 'tool_use', id: `toolu_${this.id}_${key}`, name: '', input: {} });
    this.calls.set(key, segment as Segment<CallBlock>);
    return segment as Segment<CallBlock>;
  }

  private findLast<T extends 'text' | 'thinking'>(type: T) {
    const last = this.queue.at(-1);
    return last?.block.type === type ? (last as Segment<Extract<ContentBlock, { type: T }>>) : undefined;
  }

  private append(block: ContentBlock): Segment {
    const start = { ...block };
    const segment: Segment = {
      block,
      // The name of a call comes later than the call.
      getStartBlock: () => ('input' in start ? { ...block, input: {} } : start),
      index: -1,
      pendingDeltas: [],
      argumentsText: '',
      isEnded: false,
    };
    this.queue.push(segment);
    if (this.queue.length === 1) this.open(segment);
    else this.advance();
    return segment;
  }

  private applyDelta(segment: Segment, delta: JsonObject): void {
    const { block, index } = segment;
    if (block.type === 'text') {
      if (delta.type === 'text_delta') block.text += this.retainsTexts ? delta.text : '';
      else block.citations = [...(block.citations ?? []), delta.citation as JsonObject];
    } else if (block.type === 'thinking') {
      if (delta.type === 'thinking_delta') block.thinking += delta.thinking;
      else block.signature = String(delta.signature);
    } else if (block.type === 'server_tool_use') {
      segment.argumentsText += delta.partial_json;
    }
    if (index < 0) segment.pendingDeltas.push(delta);
    else this.events.push({ type: 'content_block_delta', index, delta });
  }

  /** Goes on to the next block as long as the one that is open is complete. */
  private advance(): void {
    while (this.queue.length > 1 && isComplete(this.queue[0] as Segment)) this.closeFirst();
  }

  private open(segment: Segment): void {
    const { block, pendingDeltas } = segment;
    if (segment.index >= 0 || (block.type === 'tool_use' && block.name === '')) return;
    const index = this.blocks.push(block) - 1;
    segment.index = index;
    segment.pendingDeltas = [];
    this.events.push({ type: 'content_block_start', index, content_block: segment.getStartBlock() });
    for (const delta of pendingDeltas) this.events.push({ type: 'content_block_delta', index, delta });
  }

  /** Ends the block that is open. One that was never announced, a call of nothing, is not there. */
  private closeFirst(): void {
    const segment = this.queue.shift() as Segment;
    const { block, index, argumentsText } = segment;
    segment.isEnded = true;
    if (block.type === 'tool_use' || block.type === 'server_tool_use')
      block.input = parseCallInput(argumentsText) ?? {};
    if (index >= 0) this.events.push({ type: 'content_block_stop', index });
    if (this.queue[0]) this.open(this.queue[0]);
  }

  private flushEvents(): readonly TypedEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }
}

/** The text of a page is for the model alone. */
function toSearchResultBlock({ url, title }: NonNullable<SearchStatus['results']>[number]): JsonObject {
  return { type: 'web_search_result', url, title, encrypted_content: '', page_age: null };
}

function isComplete({ block, argumentsText }: Segment): boolean {
  return (
    block.type !== 'tool_use' ||
    (block.name !== '' && argumentsText !== '' && parseCallInput(argumentsText) !== undefined)
  );
}

/** The input of a call; undefined for arguments that were cut, or that a model made up. */
function parseCallInput(args: string): unknown {
  if (args.trim() === '') return {};
  try {
    const input = JSON.parse(args);
    return isJsonObject(input) ? input : undefined;
  } catch {
    return undefined;
  }
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function filterJsonObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
