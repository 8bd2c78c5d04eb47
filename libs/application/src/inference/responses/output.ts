/**
 * A chat answer as the output items of a response, and the events that announce them: one item after the other, each
 * added, filled and done. An answer in one piece goes the same way, as a single delta.
 */

import type { SearchStatus } from '../../providers/web-search.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';
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

/** A call while it is made: models write the plain text of a tool as the arguments of a function. */
interface OpenCall {
  readonly item: CallItem;
  written: string;
}

export class ResponseOutput {
  /** With everything that the next answer can use. */
  readonly kept: OutputItem[] = [];
  /** Where each stands among them. */
  private readonly places = new Map<OutputItem, number>();
  /** The message or the reasoning that is being filled: the next thing that is not of its kind ends it. */
  private text: MessageItem | ReasoningItem | undefined;
  /** By their index in the chat answer. They stay open to the end: their arguments may come by turns. */
  private readonly calls = new Map<number, OpenCall>();
  /** By their place among the searches. */
  private readonly searches = new Map<number, SearchItem>();
  /** Sources that came before the text that they are sources of. */
  private citations: JsonObject[] = [];
  /** Of the reasoning that is being filled: what its maker wants back. */
  private details = new ReasoningCollector();
  private events: TypedEvent[] = [];

  /**
   * @param id what the ids of all items are made of
   * @param toolset by which the caller knows the tools that are called
   * @param showsEncrypted whether the client wants the reasoning that it cannot read
   */
  constructor(
    private readonly id: string,
    private readonly toolset = new Toolset({}),
    private readonly showsEncrypted = false,
  ) {}

  get items(): readonly OutputItem[] {
    return this.kept.map((item) => this.shown(item));
  }

  /** All text of all messages. */
  get outputText(): string {
    const parts = this.kept.flatMap((item) => (item.type === 'message' ? item.content : []));
    return parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
  }

  /**
   * Takes the next piece, and returns what it lets happen.
   * @param logprobs of the tokens of its content
   */
  accept(
    { content, refusal, reasoning, reasoning_content, reasoning_details, annotations, tool_calls }: ChatDelta,
    logprobs?: unknown,
  ): readonly TypedEvent[] {
    const thought = reasoning ?? reasoning_content;
    if (isSaid(thought)) this.think(thought);
    this.keepThoughts(objectsIn(reasoning_details));
    if (isSaid(content)) this.say(content, objectsIn(logprobs));
    for (const each of objectsIn(annotations)) this.annotate(each);
    if (isSaid(refusal)) this.refuse(refusal);
    for (const [at, each] of objectsIn(tool_calls).entries()) this.callTool(each, at);
    return this.delivered();
  }

  /** Takes a search of the web: what was said before it is complete. One that is reported only at its end starts there. */
  search({ at, query, state }: SearchStatus): readonly TypedEvent[] {
    const item = this.searches.get(at) ?? this.openSearch(at, query);
    if (state === 'searching') return this.delivered();
    if (state === 'completed') this.emit('response.web_search_call.completed', item, {});
    this.done(item, state);
    return this.delivered();
  }

  /** Ends all that is open. An answer always has an item, and be it an empty message. */
  end(status: 'completed' | 'incomplete'): readonly TypedEvent[] {
    if (this.citations.length > 0 || this.kept.every(isSearch)) this.textPart(this.messageItem());
    this.endText(status);
    for (const call of this.calls.values()) this.endCall(call, status);
    this.calls.clear();
    return this.delivered();
  }

  /** The answer broke off: what is open stays so. */
  breakOff(): void {
    for (const item of this.kept) if (item.status === 'in_progress') item.status = 'incomplete';
  }

  private think(delta: string): void {
    const item = this.reasoningItem();
    const [part = this.openSummary(item)] = item.summary;
    part.text += delta;
    this.emit('response.reasoning_summary_text.delta', item, { summary_index: 0, delta });
  }

  private keepThoughts(details: readonly JsonObject[]): void {
    if (details.length === 0) return;
    this.reasoningItem();
    this.details.add(details);
  }

  private reasoningItem(): ReasoningItem {
    if (this.text?.type === 'reasoning') return this.text;
    this.endText('completed');
    const item: ReasoningItem = { type: 'reasoning', id: this.newId('reasoning'), status: 'in_progress', summary: [] };
    this.add(item);
    this.text = item;
    this.details = new ReasoningCollector();
    return item;
  }

  private openSummary(item: ReasoningItem): ReasoningItem['summary'][number] {
    const part = { type: 'summary_text', text: '' } as const;
    this.emit('response.reasoning_summary_part.added', item, { summary_index: 0, part: { ...part } });
    item.summary.push({ ...part });
    return item.summary[0] as ReasoningItem['summary'][number];
  }

  private say(delta: string, logprobs: readonly JsonObject[]): void {
    const item = this.messageItem();
    const part = this.textPart(item);
    part.text += delta;
    part.logprobs.push(...logprobs);
    this.emit('response.output_text.delta', item, { content_index: indexOfLast(item.content), delta, logprobs });
  }

  private annotate({ type, url_citation }: JsonObject): void {
    if (type !== 'url_citation' || !isJsonObject(url_citation)) return;
    const { url, title, start_index, end_index } = url_citation;
    const annotation = { type, url, title: title ?? '', start_index: start_index ?? 0, end_index: end_index ?? 0 };
    if (this.text?.type === 'message') this.cite(this.text, this.textPart(this.text), annotation);
    else this.citations.push(annotation);
  }

  private cite(item: MessageItem, part: TextPart, annotation: JsonObject): void {
    const annotation_index = part.annotations.push(annotation) - 1;
    const content_index = indexOfLast(item.content);
    this.emit('response.output_text.annotation.added', item, { content_index, annotation_index, annotation });
  }

  private refuse(delta: string): void {
    const item = this.messageItem();
    let part = item.content.at(-1);
    if (part?.type !== 'refusal') {
      this.endPart(item);
      part = { type: 'refusal', refusal: '' };
      this.addPart(item, part);
    }
    part.refusal += delta;
    this.emit('response.refusal.delta', item, { content_index: indexOfLast(item.content), delta });
  }

  private messageItem(): MessageItem {
    if (this.text?.type === 'message') return this.text;
    this.endText('completed');
    const id = this.newId('message');
    const item: MessageItem = { type: 'message', id, status: 'in_progress', role: 'assistant', content: [] };
    this.add(item);
    this.text = item;
    return item;
  }

  private textPart(item: MessageItem): TextPart {
    const last = item.content.at(-1);
    if (last?.type === 'output_text') return last;
    this.endPart(item);
    const part: TextPart = { type: 'output_text', text: '', annotations: [], logprobs: [] };
    this.addPart(item, part);
    const { citations } = this;
    this.citations = [];
    for (const each of citations) this.cite(item, part, each);
    return part;
  }

  private addPart(item: MessageItem, part: TextPart | RefusalPart): void {
    const content_index = item.content.push(part) - 1;
    this.emit('response.content_part.added', item, { content_index, part: structuredClone(part) });
  }

  private endPart(item: MessageItem): void {
    const part = item.content.at(-1);
    if (!part) return;
    const content_index = indexOfLast(item.content);
    if (part.type === 'refusal') this.emit('response.refusal.done', item, { content_index, refusal: part.refusal });
    else this.emit('response.output_text.done', item, { content_index, text: part.text, logprobs: [...part.logprobs] });
    this.emit('response.content_part.done', item, { content_index, part: structuredClone(part) });
  }

  private callTool({ index, id, function: called }: JsonObject, at: number): void {
    const { name, arguments: args } = isJsonObject(called) ? called : {};
    const key = typeof index === 'number' ? index : at;
    const call = this.calls.get(key) ?? this.openCall(key, id, name);
    if (!isSaid(args)) return;
    call.written += args;
    if (call.item.type === 'custom_tool_call') return;
    call.item.arguments += args;
    this.emit('response.function_call_arguments.delta', call.item, { delta: args });
  }

  private openCall(key: number, id: unknown, name: unknown): OpenCall {
    this.endText('completed');
    const { type, own } = this.toolset.called(isSaid(name) ? name : '');
    const itemId = this.newId(type === 'custom' ? 'custom_tool_call' : 'function_call');
    const head = { id: itemId, status: 'in_progress', call_id: isSaid(id) ? id : `call_${itemId}`, ...own } as const;
    const item: CallItem =
      type === 'custom'
        ? { type: 'custom_tool_call', ...head, input: '' }
        : { type: 'function_call', ...head, arguments: '' };
    const call = { item, written: '' };
    this.calls.set(key, call);
    this.add(item);
    return call;
  }

  private openSearch(at: number, query: string): SearchItem {
    this.endText('completed');
    const id = this.newId('web_search_call');
    const item: SearchItem = { type: 'web_search_call', id, status: 'in_progress', action: { type: 'search', query } };
    this.searches.set(at, item);
    this.add(item);
    this.emit('response.web_search_call.in_progress', item, {});
    this.emit('response.web_search_call.searching', item, {});
    return item;
  }

  private endText(status: 'completed' | 'incomplete'): void {
    const item = this.text;
    this.text = undefined;
    if (!item) return;
    if (item.type === 'message') this.endPart(item);
    else this.endReasoning(item);
    this.done(item, status);
  }

  /** What its maker wants back is known when all of it has come. */
  private endReasoning(item: ReasoningItem): void {
    if (this.details.all.length > 0) item.encrypted_content = encodeReasoning(this.details.all);
    const [part] = item.summary;
    if (!part) return;
    this.emit('response.reasoning_summary_text.done', item, { summary_index: 0, text: part.text });
    this.emit('response.reasoning_summary_part.done', item, { summary_index: 0, part: { ...part } });
  }

  /** Plain text is known when all of it has been written. */
  private endCall({ item, written }: OpenCall, status: 'completed' | 'incomplete'): void {
    if (item.type === 'function_call') {
      const { name, arguments: args } = item;
      this.emit('response.function_call_arguments.done', item, { name, arguments: args });
    } else {
      item.input = parseToolInput(written);
      if (item.input !== '') this.emit('response.custom_tool_call_input.delta', item, { delta: item.input });
      this.emit('response.custom_tool_call_input.done', item, { input: item.input });
    }
    this.done(item, status);
  }

  private add(item: OutputItem): void {
    const output_index = this.kept.push(item) - 1;
    this.places.set(item, output_index);
    this.events.push({ type: 'response.output_item.added', output_index, item: this.shown(structuredClone(item)) });
  }

  private done(item: OutputItem, status: 'completed' | 'incomplete' | 'failed'): void {
    item.status = status;
    const output_index = this.places.get(item);
    this.events.push({ type: 'response.output_item.done', output_index, item: this.shown(structuredClone(item)) });
  }

  private emit(type: string, item: OutputItem, more: JsonObject): void {
    this.events.push({ type, item_id: item.id, output_index: this.places.get(item), ...more });
  }

  private shown(item: OutputItem): OutputItem {
    return this.showsEncrypted ? item : omitEncryptedReasoning(item);
  }

  private delivered(): readonly TypedEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }

  private newId(type: OutputItem['type']): string {
    return `${ID_PREFIX[type]}_${this.id}_${this.kept.length}`;
  }
}

function isSearch({ type }: OutputItem): boolean {
  return type === 'web_search_call';
}

function isSaid(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function indexOfLast(list: readonly unknown[]): number {
  return list.length - 1;
}
