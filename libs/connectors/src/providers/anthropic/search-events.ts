import type { SearchStatus } from '#application';
import { type ForwardEvents, NO_EVENTS } from '../../http/stream-relay.ts';
import { type AnthropicContentBlock, type Citation, toAnnotations } from './blocks.ts';
import { type AnthropicBlockKind, type Event, MessageEvents } from './message-events.ts';
import { Searches, WEB_SEARCH } from './searches.ts';

/** A block that is looked into: the query of a search, or a text with its sources. */
interface Watched {
  readonly start: AnthropicContentBlock;
  /** The inside of a JSON string, in Latin-1. */
  text: string;
  readonly citations: Citation[];
}

/** The events of an answer that Anthropic may search the web for: with its searches, and its sources as annotations. */
export class SearchEvents extends MessageEvents {
  private readonly searches = new Searches();
  private readonly watched = new Map<number, Watched>();
  private notes: SearchStatus[] = [];
  /** Characters of all texts so far. */
  private length = 0;

  get invoiced(): number {
    return this.searches.invoiced;
  }

  /** A search is passed on where it stands between the events. */
  protected override translate(events: readonly string[], pass: ForwardEvents): void {
    for (const event of events) {
      super.translate([event], pass);
      for (const note of this.notes) pass(NO_EVENTS, note);
      this.notes = [];
    }
  }

  protected override open(index: number, start: AnthropicContentBlock): string {
    if (start.type === 'web_search_tool_result') {
      this.notes.push(this.searches.end(start));
      return '';
    }
    const isSearch = start.type === 'server_tool_use' && start.name === WEB_SEARCH;
    if (start.type === 'text' || isSearch) this.watched.set(index, { start, text: '', citations: [] });
    return super.open(index, start);
  }

  protected override piece(index: number, kind: AnthropicBlockKind, text: string): string {
    const watched = this.watched.get(index);
    if (watched) watched.text += text;
    return watched?.start.type === 'server_tool_use' ? '' : super.piece(index, kind, text);
  }

  protected override delta(index: number, delta: NonNullable<Event['delta']>): string {
    if (delta.citation) this.watched.get(index)?.citations.push(delta.citation);
    return super.delta(index, delta);
  }

  protected override close(index: number): string {
    const watched = this.watched.get(index);
    this.watched.delete(index);
    const closed = super.close(index);
    if (!watched) return closed;
    const { start, text, citations } = watched;
    const said = outside(text);
    if (start.type === 'server_tool_use') {
      this.notes.push(this.searches.begin(start.id, inputFrom(said) ?? start.input));
      return closed;
    }
    const from = this.length;
    this.length += said.length;
    const annotations = toAnnotations(citations, from, this.length);
    return annotations.length === 0 ? closed : closed + this.deltaChunk({ annotations });
  }

  protected override used(usage: unknown): void {
    this.searches.report(usage);
    super.used(usage);
  }
}

/** The text that stands so between the quotes of JSON, in Latin-1. */
function outside(text: string): string {
  try {
    return JSON.parse(`"${Buffer.from(text, 'latin1').toString('utf8')}"`);
  } catch {
    return '';
  }
}

function inputFrom(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
