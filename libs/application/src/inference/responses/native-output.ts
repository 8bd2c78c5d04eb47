/**
 * The output of a provider with the Responses API. Its items and their events are forwarded unchanged, apart from
 * sequence numbers, names of tools and encrypted reasoning. The events are also folded, so that an interrupted response
 * contains its output so far.
 */

import { isJsonObject, type JsonObject } from '#kernel';
import { UpstreamError } from '../../errors.ts';

import type { TypedEvent } from '../chat/translating-writer.ts';
import { omitEncryptedReasoning } from './reasoning.ts';
import { Toolset } from './toolset.ts';

/** Fields to which the deltas of an event type are appended. */
const DELTA_FIELDS: ReadonlyMap<string, 'text' | 'refusal' | 'arguments' | 'input'> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.custom_tool_call_input.delta', 'input'],
  ['response.reasoning_summary_text.delta', 'text'],
]);

const CALL_TYPES: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call']);
/** Types of items that only the provider that generated them can use. */
const PROVIDER_ITEM_TYPES: ReadonlySet<unknown> = new Set(['reasoning', 'web_search_call']);

/** Maximum number of streamed items in a response, and of parts in an item. */
const MAX_LIST_LENGTH = 10_000;

type MutableItem = Record<string, unknown>;

export class NativeOutput {
  private readonly allItems: MutableItem[] = [];
  /** Why the response ended before it was complete, as the provider reported it. */
  incompleteReason: string | undefined;

  /**
   * @param showsEncrypted whether the client requested encrypted reasoning
   * @param toolset provides the caller's names of called tools
   */
  constructor(
    private readonly showsEncrypted: boolean,
    private readonly toolset = new Toolset({}),
  ) {}

  get items(): readonly JsonObject[] {
    return this.presentItems.map((item) => this.toVisibleItem(item));
  }

  /** Returns the items with everything that later requests can use. @param provider slug of the output's provider */
  getRetainedItems(provider: string): readonly JsonObject[] {
    return this.presentItems.map((item) =>
      PROVIDER_ITEM_TYPES.has(item.type) ? { ...item, made_by: provider } : item,
    );
  }

  get outputText(): string {
    return this.presentItems
      .flatMap(({ type, content }) =>
        type === 'message' && Array.isArray(content) ? content.filter(isJsonObject) : [],
      )
      .map(({ type, text }) => (type === 'output_text' && typeof text === 'string' ? text : ''))
      .join('');
  }

  /** Adds an event or the complete response. @returns the events to send for it */
  accept(eventOrResponse: JsonObject): readonly TypedEvent[] {
    const { response } = eventOrResponse;
    const finalResponse = eventOrResponse.object === 'response' ? eventOrResponse : response;
    if (isJsonObject(finalResponse)) {
      this.applyFinalResponse(finalResponse);
      return [];
    }
    const { sequence_number: _, ...event } = this.withCallerNames(eventOrResponse as TypedEvent);
    this.applyEvent(event as TypedEvent);
    return [isJsonObject(event.item) ? { ...event, item: this.toVisibleItem(event.item) } : event];
  }

  /** Replaces tool names that the model uses with the caller's names. */
  private withCallerNames(event: TypedEvent): TypedEvent {
    if (isJsonObject(event.item)) return { ...event, item: this.toCallerItem(event.item) };
    if (event.type !== 'response.function_call_arguments.done' || typeof event.name !== 'string') return event;
    return { ...event, name: this.toolset.getTool(event.name).toolName.name };
  }

  private toCallerItem(item: JsonObject): JsonObject {
    if (!CALL_TYPES.has(item.type) || typeof item.name !== 'string') return item;
    return { ...item, ...this.toolset.getTool(item.name).toolName };
  }

  /** Marks open items as incomplete after the response was interrupted. */
  interrupt(): void {
    for (const item of this.presentItems) if (item.status === 'in_progress') item.status = 'incomplete';
  }

  private get presentItems(): readonly MutableItem[] {
    return this.allItems.filter((item) => item !== undefined);
  }

  private applyFinalResponse({ output, incomplete_details }: JsonObject): void {
    if (Array.isArray(output))
      this.allItems.splice(
        0,
        this.allItems.length,
        ...output.filter(isJsonObject).map((item) => this.toCallerItem(item)),
      );
    const reason = isJsonObject(incomplete_details) ? incomplete_details.reason : undefined;
    if (typeof reason === 'string') this.incompleteReason = reason;
  }

  private toVisibleItem(item: JsonObject): JsonObject {
    return this.showsEncrypted ? item : omitEncryptedReasoning(item);
  }

  /** Folds an event. Items and parts are copied, because the event is sent later and must not show further changes. */
  private applyEvent({ type, output_index, ...event }: TypedEvent): void {
    if (output_index === undefined || output_index === null) return;
    assertIndex(output_index);
    if (isJsonObject(event.item)) this.allItems[output_index] = structuredClone(event.item);
    const item = this.allItems[output_index];
    if (!item) return;
    const at = event.content_index ?? event.summary_index ?? undefined;
    if (at !== undefined) assertIndex(at);
    const parts = event.summary_index === undefined ? 'content' : 'summary';
    if (isJsonObject(event.part) && at !== undefined) this.getList(item, parts)[at] = structuredClone(event.part);
    const part = at !== undefined ? this.getList(item, parts)[at] : item;
    const field = DELTA_FIELDS.get(type);
    if (field && isJsonObject(part)) (part as MutableItem)[field] = `${part[field] ?? ''}${event.delta}`;
    if (type === 'response.output_text.annotation.added' && isJsonObject(part))
      this.getList(part as MutableItem, 'annotations').push(event.annotation as MutableItem);
  }

  private getList(item: MutableItem, field: string): MutableItem[] {
    if (!Array.isArray(item[field])) item[field] = [];
    return item[field] as MutableItem[];
  }
}

/** Limits the length of a list, which depends on its highest index. @throws UpstreamError for an invalid index */
function assertIndex(index: unknown): asserts index is number {
  if (Number.isInteger(index) && (index as number) >= 0 && (index as number) < MAX_LIST_LENGTH) return;
  throw new UpstreamError('upstream_error', 'The provider sent an item or part with an invalid index');
}
