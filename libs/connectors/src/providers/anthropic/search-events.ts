import type { SearchStatus } from '#application';
import { type ForwardEvents, NO_EVENTS } from '../../http/stream-relay.ts';
import { type AnthropicContentBlock, type Citation, toAnnotations } from './blocks.ts';
import { type AnthropicBlockKind, type AnthropicEvent, AnthropicEventTranslator } from './message-events.ts';
import { SearchTracker, WEB_SEARCH } from './searches.ts';

/** A block whose content is needed: the query of a search, or a text with its sources. */
interface TrackedBlock {
  readonly start: AnthropicContentBlock;
  /** The content of a JSON string, in Latin-1. */
  text: string;
  readonly citations: Citation[];
}

/** Translates a completion with Anthropic's web search: forwards its searches, and its sources as annotations. */
export class AnthropicSearchTranslator extends AnthropicEventTranslator {
  private readonly searches = new SearchTracker();
  private readonly trackedBlocks = new Map<number, TrackedBlock>();
  private pendingStatuses: SearchStatus[] = [];
  /** Characters of the text blocks that have ended. */
  private length = 0;

  get invoiced(): number {
    return this.searches.invoiced;
  }

  /** Forwards each search at its position between the events. */
  protected override translateEvents(events: readonly string[], forward: ForwardEvents): void {
    for (const event of events) {
      super.translateEvents([event], forward);
      for (const status of this.pendingStatuses) forward(NO_EVENTS, status);
      this.pendingStatuses = [];
    }
  }

  protected override handleBlockStart(index: number, start: AnthropicContentBlock): string {
    if (start.type === 'web_search_tool_result') {
      this.pendingStatuses.push(this.searches.end(start));
      return '';
    }
    const isSearch = start.type === 'server_tool_use' && start.name === WEB_SEARCH;
    if (start.type === 'text' || isSearch) this.trackedBlocks.set(index, { start, text: '', citations: [] });
    return super.handleBlockStart(index, start);
  }

  protected override handleContent(index: number, kind: AnthropicBlockKind, text: string): string {
    const trackedBlock = this.trackedBlocks.get(index);
    if (trackedBlock) trackedBlock.text += text;
    return trackedBlock?.start.type === 'server_tool_use' ? '' : super.handleContent(index, kind, text);
  }

  protected override handleDelta(index: number, delta: NonNullable<AnthropicEvent['delta']>): string {
    if (delta.citation) this.trackedBlocks.get(index)?.citations.push(delta.citation);
    return super.handleDelta(index, delta);
  }

  protected override handleBlockStop(index: number): string {
    const trackedBlock = this.trackedBlocks.get(index);
    this.trackedBlocks.delete(index);
    const closed = super.handleBlockStop(index);
    if (!trackedBlock) return closed;
    const { start, text, citations } = trackedBlock;
    const decoded = unescapeJsonText(text);
    if (start.type === 'server_tool_use') {
      this.pendingStatuses.push(this.searches.begin(start.id, parseToolInput(decoded) ?? start.input));
      return closed;
    }
    const from = this.length;
    this.length += decoded.length;
    const annotations = toAnnotations(citations, from, this.length);
    return annotations.length === 0 ? closed : closed + this.toDeltaChunk({ annotations });
  }

  protected override recordUsage(usage: unknown): void {
    this.searches.recordUsage(usage);
    super.recordUsage(usage);
  }
}

/** @param text the content of a JSON string, in Latin-1 */
function unescapeJsonText(text: string): string {
  try {
    return JSON.parse(`"${Buffer.from(text, 'latin1').toString('utf8')}"`);
  } catch {
    return '';
  }
}

function parseToolInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
