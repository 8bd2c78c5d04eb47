/**
 * The output of a response as an upstream that speaks Responses makes it: its items and events are passed on as they
 * are, and folded, so that there is something to show when the answer breaks off.
 */

import { UpstreamError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';
import type { TypedEvent } from '../chat/translating-writer.ts';
import { omitEncryptedReasoning } from './reasoning.ts';
import { Toolset } from './toolset.ts';

/** Fields that are filled by the deltas of an event. */
const DELTAS: ReadonlyMap<string, 'text' | 'refusal' | 'arguments' | 'input'> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.custom_tool_call_input.delta', 'input'],
  ['response.reasoning_summary_text.delta', 'text'],
]);

const CALLS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call']);
/** What only its maker can use. */
const OWN: ReadonlySet<unknown> = new Set(['reasoning', 'web_search_call']);

/** Of items in an answer, and of parts in one of them. */
const MOST_PLACES = 10_000;

type Item = Record<string, unknown>;

export class NativeOutput {
  private readonly all: Item[] = [];
  /** Why it ended before it was complete. */
  cutShort: string | undefined;

  /**
   * @param showsEncrypted whether the client wants the reasoning that it cannot read
   * @param toolset by which the caller knows the tools that are called
   */
  constructor(
    private readonly showsEncrypted: boolean,
    private readonly toolset = new Toolset({}),
  ) {}

  get items(): readonly JsonObject[] {
    return this.made.map((item) => this.shown(item));
  }

  /** With everything that the next answer can use. @param provider the maker */
  kept(provider: string): readonly JsonObject[] {
    return this.made.map((item) => (OWN.has(item.type) ? { ...item, made_by: provider } : item));
  }

  get outputText(): string {
    return this.made
      .flatMap(({ type, content }) =>
        type === 'message' && Array.isArray(content) ? content.filter(isJsonObject) : [],
      )
      .map(({ type, text }) => (type === 'output_text' && typeof text === 'string' ? text : ''))
      .join('');
  }

  /** Takes the next event, or the whole response, and returns the events to send for it. */
  accept(answer: JsonObject): readonly TypedEvent[] {
    const { response } = answer;
    const whole = answer.object === 'response' ? answer : response;
    if (isJsonObject(whole)) {
      this.end(whole);
      return [];
    }
    const { sequence_number: _, ...event } = this.named(answer as TypedEvent);
    this.fold(event as TypedEvent);
    return [isJsonObject(event.item) ? { ...event, item: this.shown(event.item) } : event];
  }

  /** With the names that the caller knows its tools by. */
  private named(event: TypedEvent): TypedEvent {
    if (isJsonObject(event.item)) return { ...event, item: this.called(event.item) };
    if (event.type !== 'response.function_call_arguments.done' || typeof event.name !== 'string') return event;
    return { ...event, name: this.toolset.called(event.name).own.name };
  }

  private called(item: JsonObject): JsonObject {
    if (!CALLS.has(item.type) || typeof item.name !== 'string') return item;
    return { ...item, ...this.toolset.called(item.name).own };
  }

  /** The answer broke off: what is open stays so. */
  breakOff(): void {
    for (const item of this.made) if (item.status === 'in_progress') item.status = 'incomplete';
  }

  private get made(): readonly Item[] {
    return this.all.filter((item) => item !== undefined);
  }

  private end({ output, incomplete_details }: JsonObject): void {
    if (Array.isArray(output))
      this.all.splice(0, this.all.length, ...output.filter(isJsonObject).map((item) => this.called(item)));
    const reason = isJsonObject(incomplete_details) ? incomplete_details.reason : undefined;
    if (typeof reason === 'string') this.cutShort = reason;
  }

  private shown(item: JsonObject): JsonObject {
    return this.showsEncrypted ? item : omitEncryptedReasoning(item);
  }

  /** Events are sent after they have been folded: what is changed later must be a copy. */
  private fold({ type, output_index, ...event }: TypedEvent): void {
    if (output_index === undefined || output_index === null) return;
    assertPlace(output_index);
    if (isJsonObject(event.item)) this.all[output_index] = structuredClone(event.item);
    const item = this.all[output_index];
    if (!item) return;
    const at = event.content_index ?? event.summary_index ?? undefined;
    if (at !== undefined) assertPlace(at);
    const parts = event.summary_index === undefined ? 'content' : 'summary';
    if (isJsonObject(event.part) && at !== undefined) this.listIn(item, parts)[at] = structuredClone(event.part);
    const part = at !== undefined ? this.listIn(item, parts)[at] : item;
    const field = DELTAS.get(type);
    if (field && isJsonObject(part)) (part as Item)[field] = `${part[field] ?? ''}${event.delta}`;
    if (type === 'response.output_text.annotation.added' && isJsonObject(part))
      this.listIn(part as Item, 'annotations').push(event.annotation as Item);
  }

  private listIn(item: Item, field: string): Item[] {
    if (!Array.isArray(item[field])) item[field] = [];
    return item[field] as Item[];
  }
}

/** Lists are as long as the highest place in them, and are written out. @throws UpstreamError */
function assertPlace(place: unknown): asserts place is number {
  if (Number.isInteger(place) && (place as number) >= 0 && (place as number) < MOST_PLACES) return;
  throw new UpstreamError('upstream_error', 'The upstream sent a part that there cannot be');
}
