/**
 * Converts a chat completion to the output items of a response and their events: each item is added, filled and done.
 * The next item ends the open message or reasoning. Calls stay open until the end, and searches until their end is
 * reported. A non-streaming completion is converted in the same way, as a single delta.
 */

import { isJsonObject, type JsonObject } from '#kernel';
import type { SearchStatus } from '../../providers/web-search.ts';

import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import {
  type CallItem,
  ID_PREFIX,
  type MessageItem,
  type OutputItem,
  type ReasoningItem,
  type RefusalPart,
  type SearchItem,
  type TextPart,
} from './output-items.ts';
import { encodeReasoning, omitEncryptedReasoning, ReasoningCollector } from './reasoning.ts';
import { parseToolInput, Toolset } from './toolset.ts';

/** A call while it is generated. In a chat, plain text input of a tool arrives as the arguments of a function. */
interface OpenCall {
  readonly item: CallItem;
  argumentsText: string;
}

export class ResponseOutput {
  /** The items with everything that later requests can use. */
  readonly retainedItems: OutputItem[] = [];
  /** The index of each retained item. */
  private readonly indexes = new Map<OutputItem, number>();
  /** The message or the reasoning that is being filled. The next item ends it. */
  private openItem: MessageItem | ReasoningItem | undefined;
  /** Calls by their index in the completion. They stay open until the end: chunks of several calls may alternate. */
  private readonly calls = new Map<number, OpenCall>();
  /** Search items by the index of the search. */
  private readonly searches = new Map<number, SearchItem>();
  /** Citations that arrived before their text. */
  private citations: JsonObject[] = [];
  /** Details of the open reasoning item, which its provider requires in later requests. */
  private reasoningDetails = new ReasoningCollector();
  private events: TypedEvent[] = [];

  /**
   * @param id included in the ids of all items
   * @param toolset provides the caller's names of called tools
   * @param showsEncrypted whether the client requested encrypted reasoning
   */
  constructor(
    private readonly id: string,
    private readonly toolset = new Toolset({}),
    private readonly showsEncrypted = false,
  ) {}

  get items(): readonly OutputItem[] {
    return this.retainedItems.map((item) => this.toVisibleItem(item));
  }

  get outputText(): string {
    const parts = this.retainedItems.flatMap((item) => (item.type === 'message' ? item.content : []));
    return parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
  }

  /**
   * Adds a chunk of the completion, or all of it.
   * @param logprobs log probabilities of the tokens in its content
   * @returns the events to send for it
   */
  accept(
    { content, refusal, reasoning, reasoning_content, reasoning_details, annotations, tool_calls }: ChatDelta,
    logprobs?: unknown,
  ): readonly TypedEvent[] {
    const reasoningText = reasoning ?? reasoning_content;
    if (isNonEmptyString(reasoningText)) this.appendReasoning(reasoningText);
    this.collectReasoningDetails(filterJsonObjects(reasoning_details));
    if (isNonEmptyString(content)) this.appendText(content, filterJsonObjects(logprobs));
    for (const annotation of filterJsonObjects(annotations)) this.annotate(annotation);
    if (isNonEmptyString(refusal)) this.appendRefusal(refusal);
    for (const [at, toolCall] of filterJsonObjects(tool_calls).entries()) this.callTool(toolCall, at);
    return this.flushEvents();
  }

  /**
   * Adds the state of a web search. Its start ends the open message or reasoning. A search that is reported only at its
   * end also starts then.
   */
  recordSearch({ at, query, state }: SearchStatus): readonly TypedEvent[] {
    const item = this.searches.get(at) ?? this.openSearch(at, query);
    if (state === 'searching') return this.flushEvents();
    if (state === 'completed') this.emit('response.web_search_call.completed', item, {});
    this.endItem(item, state);
    return this.flushEvents();
  }

  /** Ends all items but searches. A response always has an item other than a search, if necessary an empty message. */
  end(status: 'completed' | 'incomplete'): readonly TypedEvent[] {
    if (this.citations.length > 0 || this.retainedItems.every(isSearch)) this.ensureTextPart(this.ensureMessageItem());
    this.endText(status);
    for (const call of this.calls.values()) this.endCall(call, status);
    this.calls.clear();
    return this.flushEvents();
  }

  /** Marks open items as incomplete after the completion was interrupted. */
  interrupt(): void {
    for (const item of this.retainedItems) if (item.status === 'in_progress') item.status = 'incomplete';
  }

  private appendReasoning(delta: string): void {
    const item = this.ensureReasoningItem();
    const [part = this.openSummary(item)] = item.summary;
    part.text += delta;
    this.emit('response.reasoning_summary_text.delta', item, { summary_index: 0, delta });
  }

  private collectReasoningDetails(details: readonly JsonObject[]): void {
    if (details.length === 0) return;
    this.ensureReasoningItem();
    this.reasoningDetails.add(details);
  }

  private ensureReasoningItem(): ReasoningItem {
    if (this.openItem?.type === 'reasoning') return this.openItem;
    this.endText('completed');
    const item: ReasoningItem = {
      type: 'reasoning',
      id: this.createItemId('reasoning'),
      status: 'in_progress',
      summary: [],
    };
    this.addItem(item);
    this.openItem = item;
    this.reasoningDetails = new ReasoningCollector();
    return item;
  }

  private openSummary(item: ReasoningItem): ReasoningItem['summary'][number] {
    const part = { type: 'summary_text', text: '' } as const;
    this.emit('response.reasoning_summary_part.added', item, { summary_index: 0, part: { ...part } });
    item.summary.push({ ...part });
    return item.summary[0] as ReasoningItem['summary'][number];
  }

  private appendText(delta: string, logprobs: readonly JsonObject[]): void {
    const item = this.ensureMessageItem();
    const part = this.ensureTextPart(item);
    part.text += delta;
    part.logprobs.push(...logprobs);
    this.emit('response.output_text.delta', item, { content_index: getLastIndex(item.content), delta, logprobs });
  }

  private annotate({ type, url_citation }: JsonObject): void {
    if (type !== 'url_citation' || !isJsonObject(url_citation)) return;
    const { url, title, start_index, end_index } = url_citation;
    const annotation = { type, url, title: title ?? '', start_index: start_index ?? 0, end_index: end_index ?? 0 };
    if (this.openItem?.type === 'message') this.cite(this.openItem, this.ensureTextPart(this.openItem), annotation);
    else this.citations.push(annotation);
  }

  private cite(item: MessageItem, part: TextPart, annotation: JsonObject): void {
    const annotation_index = part.annotations.push(annotation) - 1;
    const content_index = getLastIndex(item.content);
    this.emit('response.output_text.annotation.added', item, { content_index, annotation_index, annotation });
  }

  private appendRefusal(delta: string): void {
    const item = this.ensureMessageItem();
    let part = item.content.at(-1);
    if (part?.type !== 'refusal') {
      this.endPart(item);
      part = { type: 'refusal', refusal: '' };
      this.addPart(item, part);
    }
    part.refusal += delta;
    this.emit('response.refusal.delta', item, { content_index: getLastIndex(item.content), delta });
  }

  private ensureMessageItem(): MessageItem {
    if (this.openItem?.type === 'message') return this.openItem;
    this.endText('completed');
    const id = this.createItemId('message');
    const item: MessageItem = { type: 'message', id, status: 'in_progress', role: 'assistant', content: [] };
    this.addItem(item);
    this.openItem = item;
    return item;
  }

  private ensureTextPart(item: MessageItem): TextPart {
    const last = item.content.at(-1);
    if (last?.type === 'output_text') return last;
    this.endPart(item);
    const part: TextPart = { type: 'output_text', text: '', annotations: [], logprobs: [] };
    this.addPart(item, part);
    const { citations } = this;
    this.citations = [];
    for (const citation of citations) this.cite(item, part, citation);
    return part;
  }

  private addPart(item: MessageItem, part: TextPart | RefusalPart): void {
    const content_index = item.content.push(part) - 1;
    this.emit('response.content_part.added', item, { content_index, part: structuredClone(part) });
  }

  private endPart(item: MessageItem): void {
    const part = item.content.at(-1);
    if (!part) return;
    const content_index = getLastIndex(item.content);
    if (part.type === 'refusal') this.emit('response.refusal.done', item, { content_index, refusal: part.refusal });
    else this.emit('response.output_text.done', item, { content_index, text: part.text, logprobs: [...part.logprobs] });
    this.emit('response.content_part.done', item, { content_index, part: structuredClone(part) });
  }

  private callTool({ index, id, function: called }: JsonObject, at: number): void {
    const { name, arguments: args } = isJsonObject(called) ? called : {};
    const key = typeof index === 'number' ? index : at;
    const call = this.calls.get(key) ?? this.openCall(key, id, name);
    if (!isNonEmptyString(args)) return;
    call.argumentsText += args;
    if (call.item.type === 'custom_tool_call') return;
    call.item.arguments += args;
    this.emit('response.function_call_arguments.delta', call.item, { delta: args });
  }

  private openCall(key: number, id: unknown, name: unknown): OpenCall {
    this.endText('completed');
    const { type, toolName } = this.toolset.getTool(isNonEmptyString(name) ? name : '');
    const itemId = this.createItemId(type === 'custom' ? 'custom_tool_call' : 'function_call');
    const head = {
      id: itemId,
      status: 'in_progress',
      call_id: isNonEmptyString(id) ? id : `call_${itemId}`,
      ...toolName,
    } as const;
    const item: CallItem =
      type === 'custom'
        ? { type: 'custom_tool_call', ...head, input: '' }
        : { type: 'function_call', ...head, arguments: '' };
    const call = { item, argumentsText: '' };
    this.calls.set(key, call);
    this.addItem(item);
    return call;
  }

  private openSearch(at: number, query: string): SearchItem {
    this.endText('completed');
    const id = this.createItemId('web_search_call');
    const item: SearchItem = { type: 'web_search_call', id, status: 'in_progress', action: { type: 'search', query } };
    this.searches.set(at, item);
    this.addItem(item);
    this.emit('response.web_search_call.in_progress', item, {});
    this.emit('response.web_search_call.searching', item, {});
    return item;
  }

  private endText(status: 'completed' | 'incomplete'): void {
    const item = this.openItem;
    this.openItem = undefined;
    if (!item) return;
    if (item.type === 'message') this.endPart(item);
    else this.endReasoning(item);
    this.endItem(item, status);
  }

  /** Sets the encrypted content, which is complete only at the end of the reasoning. */
  private endReasoning(item: ReasoningItem): void {
    if (this.reasoningDetails.collected.length > 0)
      item.encrypted_content = encodeReasoning(this.reasoningDetails.collected);
    const [part] = item.summary;
    if (!part) return;
    this.emit('response.reasoning_summary_text.done', item, { summary_index: 0, text: part.text });
    this.emit('response.reasoning_summary_part.done', item, { summary_index: 0, part: { ...part } });
  }

  /** Ends a call. Plain text input is sent only now, because it is extracted from the complete arguments. */
  private endCall({ item, argumentsText }: OpenCall, status: 'completed' | 'incomplete'): void {
    if (item.type === 'function_call') {
      const { name, arguments: args } = item;
      this.emit('response.function_call_arguments.done', item, { name, arguments: args });
    } else {
      item.input = parseToolInput(argumentsText);
      if (item.input !== '') this.emit('response.custom_tool_call_input.delta', item, { delta: item.input });
      this.emit('response.custom_tool_call_input.done', item, { input: item.input });
    }
    this.endItem(item, status);
  }

  private addItem(item: OutputItem): void {
    const output_index = this.retainedItems.push(item) - 1;
    this.indexes.set(item, output_index);
    this.events.push({
      type: 'response.output_item.added',
      output_index,
      item: this.toVisibleItem(structuredClone(item)),
    });
  }

  private endItem(item: OutputItem, status: 'completed' | 'incomplete' | 'failed'): void {
    item.status = status;
    const output_index = this.indexes.get(item);
    this.events.push({
      type: 'response.output_item.done',
      output_index,
      item: this.toVisibleItem(structuredClone(item)),
    });
  }

  private emit(type: string, item: OutputItem, fields: JsonObject): void {
    this.events.push({ type, item_id: item.id, output_index: this.indexes.get(item), ...fields });
  }

  private toVisibleItem(item: OutputItem): OutputItem {
    return this.showsEncrypted ? item : omitEncryptedReasoning(item);
  }

  private flushEvents(): readonly TypedEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }

  private createItemId(type: OutputItem['type']): string {
    return `${ID_PREFIX[type]}_${this.id}_${this.retainedItems.length}`;
  }
}

function isSearch({ type }: OutputItem): boolean {
  return type === 'web_search_call';
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function filterJsonObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function getLastIndex(list: readonly unknown[]): number {
  return list.length - 1;
}
