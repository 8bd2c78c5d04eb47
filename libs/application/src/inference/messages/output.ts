/**
 * Converts a chat completion to the content blocks of a message and their events: one block after the other, each
 * started, filled and stopped once. A non-streaming completion is converted in the same way, as a single delta.
 *
 * A chat may alternate between chunks of several tool calls, but only one block of a message is open at a time. Deltas
 * of a later block wait until the open one is complete. A tool call is complete when its arguments are a JSON object,
 * any other block when another block is added.
 */

import { isJsonObject, type JsonObject } from '#kernel';
import type { SearchPage, SearchStatus } from '../../providers/web-search.ts';

import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import { extractReasoning, type ReasoningBlock } from './reasoning.ts';
import type { ThinkingVisibility } from './request.ts';

interface TextBlock {
  readonly type: 'text';
  text: string;
  /**
   * Only of a text that may have some. Clients reject null, and add citations only to a block that starts with `[]`.
   */
  citations?: readonly JsonObject[];
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
  readonly caller: typeof CALLER;
}

/** A block that arrives complete. */
interface CompleteBlock {
  readonly type: 'redacted_thinking' | 'web_search_tool_result';
  readonly [field: string]: unknown;
}

export type ContentBlock = TextBlock | ThinkingBlock | CallBlock | CompleteBlock;

/** A content block and its state. */
interface Segment<B extends ContentBlock = ContentBlock> {
  readonly block: B;
  /** Returns the block as its start event contains it, before it is filled. */
  readonly getStartBlock: () => object;
  /** Index of the block in the message; -1 until the block is started. */
  index: number;
  /** Deltas that are sent when the block is started. */
  pendingDeltas: JsonObject[];
  /** Arguments of a call, which are JSON when they are complete. */
  argumentsText: string;
  isEnded: boolean;
}

const SEARCH = 'web_search';
/** All calls are made by the model itself, not by code that it runs. */
const CALLER = { type: 'direct' } as const;

export class MessageOutput {
  /** The started blocks, in the order of the message. */
  readonly blocks: ContentBlock[] = [];
  /** Number of completed web searches. */
  searchCount = 0;
  /** The first segment is open, or is a call that has no name yet; the others wait. */
  private readonly queue: Segment[] = [];
  /** Tool calls by their index in the chat completion. */
  private readonly calls = new Map<number, Segment<CallBlock>>();
  /** Ids of the search blocks by the index of the search. */
  private readonly searches = new Map<number, string>();
  /** Citations that arrived before their text. */
  private citations: JsonObject[] = [];
  private events: TypedEvent[] = [];

  /** @param id included in the generated ids of calls without an id, and of searches */
  constructor(
    private readonly id: string,
    private readonly thinkingVisibility: ThinkingVisibility,
    private readonly retainsTexts = true,
  ) {}

  get callsFunctions(): boolean {
    return this.calls.size > 0;
  }

  /** Adds a chunk of the completion, or all of it. @returns the events that can be sent now */
  accept(delta: ChatDelta): readonly TypedEvent[] {
    const { content, refusal, reasoning, reasoning_content, reasoning_details, annotations, tool_calls } = delta;
    if (this.thinkingVisibility !== 'hidden')
      for (const reasoningBlock of extractReasoning(reasoning_details, reasoning ?? reasoning_content))
        this.appendReasoning(reasoningBlock);
    for (const annotation of filterJsonObjects(annotations)) this.cite(annotation);
    for (const text of [content, refusal]) if (isNonEmptyString(text)) this.appendText(text);
    for (const [at, toolCall] of filterJsonObjects(tool_calls).entries()) this.callTool(toolCall, at);
    return this.flushEvents();
  }

  /**
   * Adds the state of a web search. A search that is reported only at its end also starts then, unless it is resumed.
   */
  recordSearch({ id: givenId, at, query, state, results = [], isResumed }: SearchStatus): readonly TypedEvent[] {
    let id = this.searches.get(at);
    if (id === undefined) {
      id = givenId ?? `srvtoolu_${this.id}_${at}`;
      this.searches.set(at, id);
      const block: CallBlock = { type: 'server_tool_use', id, name: SEARCH, input: {}, caller: CALLER };
      if (!isResumed)
        this.applyDelta(this.append(block), { type: 'input_json_delta', partial_json: JSON.stringify({ query }) });
    }
    if (state !== 'searching') {
      if (state === 'completed') this.searchCount++;
      const content =
        state === 'completed'
          ? results.map(toSearchResultBlock)
          : { type: 'web_search_tool_result_error', error_code: 'unavailable' };
      this.append({ type: 'web_search_tool_result', tool_use_id: id, content, caller: CALLER });
    }
    return this.flushEvents();
  }

  /** Closes all blocks. @returns their events */
  end(): readonly TypedEvent[] {
    while (this.queue.length > 0) this.closeFirst();
    return this.flushEvents();
  }

  private appendReasoning(reasoning: ReasoningBlock): void {
    if ('encrypted' in reasoning) return void this.append({ type: 'redacted_thinking', data: reasoning.encrypted });
    const { text, signature } = reasoning;
    const last = this.findLast('thinking');
    const open = last?.block.signature === '' ? last : undefined;
    // Some providers repeat the complete text of a reasoning block together with its signature.
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
    return this.findLast('text') ?? this.createTextSegment();
  }

  private createTextSegment(): Segment {
    const { citations } = this;
    this.citations = [];
    const canBeCited = this.searches.size > 0 || citations.length > 0;
    const segment = this.append({ type: 'text', text: '', ...(canBeCited ? { citations: [] } : {}) });
    for (const citation of citations) this.applyDelta(segment, { type: 'citations_delta', citation });
    return segment;
  }

  private cite({ type, url_citation }: JsonObject): void {
    if (type !== 'url_citation' || !isJsonObject(url_citation)) return;
    const { url, title, content } = url_citation;
    const cited_text = typeof content === 'string' ? content : '';
    const citation = { type: 'web_search_result_location', url, title: title ?? null, cited_text, encrypted_index: '' };
    const text = this.findLast('text');
    if (text?.block.citations) return void this.applyDelta(text, { type: 'citations_delta', citation });
    this.citations.push(citation);
    if (text) this.createTextSegment(); // the open block can have no citations any more
  }

  private callTool({ index, id, function: called }: JsonObject, position: number): void {
    const { name, arguments: args } = isJsonObject(called) ? called : {};
    const key = typeof index === 'number' ? index : position;
    const segment = this.calls.get(key) ?? this.createCallSegment(key);
    const { block } = segment;
    // The start event contains id and name, so the block is not started before it has a name.
    if (isNonEmptyString(id) && segment.index < 0) block.id = id;
    if (isNonEmptyString(name) && block.name === '') block.name = name;
    if (segment === this.queue[0]) this.open(segment);
    if (!isNonEmptyString(args) || segment.isEnded) return;
    segment.argumentsText += args;
    this.applyDelta(segment, { type: 'input_json_delta', partial_json: args });
    this.advance();
  }

  private createCallSegment(key: number): Segment<CallBlock> {
    const id = `toolu_${this.id}_${key}`;
    const block: CallBlock = { type: 'tool_use', id, name: '', input: {}, caller: CALLER };
    const segment = this.append(block) as Segment<CallBlock>;
    this.calls.set(key, segment);
    return segment;
  }

  private findLast<T extends 'text' | 'thinking'>(type: T) {
    const last = this.queue.at(-1);
    return last?.block.type === type ? (last as Segment<Extract<ContentBlock, { type: T }>>) : undefined;
  }

  private append(block: ContentBlock): Segment {
    const start = { ...block };
    const segment: Segment = {
      block,
      // The name of a call may arrive after its first chunk.
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

  /** Closes the open block if it is complete and another block waits, and repeats this for the next one. */
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

  /** Closes the open block. A call that never got a name was not started and is omitted. */
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

/** Converts a search result. The client does not get the text of the page, which is only for the model. */
function toSearchResultBlock({ url, title, encrypted = '' }: SearchPage): JsonObject {
  return { type: 'web_search_result', url, title, encrypted_content: encrypted, page_age: null };
}

function isComplete({ block, argumentsText }: Segment): boolean {
  return (
    block.type !== 'tool_use' ||
    (block.name !== '' && argumentsText !== '' && parseCallInput(argumentsText) !== undefined)
  );
}

/** Parses the arguments of a call: `{}` if they are blank; undefined if they are incomplete or not a JSON object. */
function parseCallInput(args: string): unknown {
  if (args.trim() === '') return {};
  try {
    const input = JSON.parse(args);
    return isJsonObject(input) ? input : undefined;
  } catch {
    return undefined; // invalid JSON
  }
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function filterJsonObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
