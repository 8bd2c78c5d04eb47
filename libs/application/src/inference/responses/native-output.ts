/**
 * The output of a response as an upstream that speaks Responses makes it: its items and events are passed on as they
 * are, and folded, so that there is something to show when the answer breaks off.
 */
import { isObject, type Thing } from './items.ts';
import type { ResponseEvent } from './output.ts';

/** Fields that are filled by the deltas of an event. */
const DELTAS: ReadonlyMap<string, 'text' | 'refusal' | 'arguments'> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.reasoning_summary_text.delta', 'text'],
]);

/** What only its maker can use. */
const OWN: ReadonlySet<unknown> = new Set(['reasoning', 'web_search_call']);

type Item = Record<string, unknown>;

export class NativeOutput {
  private readonly all: Item[] = [];
  /** Why it ended before it was complete. */
  cutShort: string | undefined;

  /** @param showsEncrypted whether the client wants the reasoning that it cannot read */
  constructor(private readonly showsEncrypted: boolean) {}

  get items(): readonly Thing[] {
    return this.made.map((item) => this.shown(item));
  }

  /** With everything that the next answer can use. @param provider the maker */
  kept(provider: string): readonly Thing[] {
    return this.made.map((item) => (OWN.has(item.type) ? { ...item, made_by: provider } : item));
  }

  get outputText(): string {
    return this.made
      .flatMap(({ type, content }) => (type === 'message' && Array.isArray(content) ? content.filter(isObject) : []))
      .map(({ type, text }) => (type === 'output_text' && typeof text === 'string' ? text : ''))
      .join('');
  }

  /** Takes the next event, or the whole response, and returns the events to send for it. */
  accept(answer: Thing): readonly ResponseEvent[] {
    const { response } = answer;
    const whole = answer.object === 'response' ? answer : response;
    if (isObject(whole)) {
      this.end(whole);
      return [];
    }
    const { sequence_number: _, ...event } = answer as Thing & ResponseEvent;
    this.fold(event as ResponseEvent);
    return [isObject(event.item) ? { ...event, item: this.shown(event.item) } : event];
  }

  /** The answer broke off: what is open stays so. */
  breakOff(): void {
    for (const item of this.made) if (item.status === 'in_progress') item.status = 'incomplete';
  }

  private get made(): readonly Item[] {
    return this.all.filter((item) => item !== undefined);
  }

  private end({ output, incomplete_details }: Thing): void {
    if (Array.isArray(output)) this.all.splice(0, this.all.length, ...output.filter(isObject));
    const reason = isObject(incomplete_details) ? incomplete_details.reason : undefined;
    if (typeof reason === 'string') this.cutShort = reason;
  }

  private shown(item: Thing): Thing {
    if (this.showsEncrypted || item.encrypted_content === undefined) return item;
    const { encrypted_content: _, ...shown } = item;
    return shown;
  }

  /** Events are sent after they have been folded: what is changed later must be a copy. */
  private fold({ type, output_index, ...event }: ResponseEvent): void {
    if (typeof output_index !== 'number') return;
    if (isObject(event.item)) this.all[output_index] = structuredClone(event.item);
    const item = this.all[output_index];
    if (!item) return;
    const at = event.content_index ?? event.summary_index;
    const parts = event.summary_index === undefined ? 'content' : 'summary';
    if (isObject(event.part) && typeof at === 'number') this.listIn(item, parts)[at] = structuredClone(event.part);
    const part = typeof at === 'number' ? this.listIn(item, parts)[at] : item;
    const field = DELTAS.get(type);
    if (field && isObject(part)) (part as Item)[field] = `${part[field] ?? ''}${event.delta}`;
    if (type === 'response.output_text.annotation.added' && isObject(part))
      this.listIn(part as Item, 'annotations').push(event.annotation as Item);
  }

  private listIn(item: Item, field: string): Item[] {
    if (!Array.isArray(item[field])) item[field] = [];
    return item[field] as Item[];
  }
}
