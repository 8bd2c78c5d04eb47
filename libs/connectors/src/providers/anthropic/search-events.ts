import type { CompletionIdentity, PausedResponse, SearchStatus } from '#application';
import { type ForwardEvents, NO_EVENTS } from '../../http/stream-relay.ts';
import { type AnthropicContentBlock, type Citation, type MessageStop, PAUSE_TURN, toAnnotations } from './blocks.ts';
import {
  type AnthropicBlockKind,
  type AnthropicEvent,
  AnthropicEventTranslator,
  type AnthropicReaders,
} from './message-events.ts';
import { createPausedResponse, MAX_PAUSED_CHARACTERS } from './paused-response.ts';
import { SearchTracker, WEB_SEARCH } from './searches.ts';

/** A block that has started. */
interface TrackedBlock {
  readonly start: AnthropicContentBlock;
  /** The content of a JSON string, in Latin-1. */
  text: string;
  readonly citations: Citation[];
  signature: string;
}

/** Translates a completion with Anthropic's web search: forwards its searches, and its sources as annotations. */
export class AnthropicSearchTranslator extends AnthropicEventTranslator {
  private readonly searches: SearchTracker;
  private readonly trackedBlocks = new Map<number, TrackedBlock>();
  private pendingStatuses: SearchStatus[] = [];
  /** Characters of the text blocks that have ended. */
  private length: number;
  /** The blocks of the turn that have ended. */
  private readonly content: AnthropicContentBlock[];
  private contentLength = 0;
  private turn: PausedResponse | undefined;

  /**
   * @param hidesReasoning whether the model's reasoning is left out
   * @param paused content of the turn that the completion continues
   */
  constructor(
    identity: CompletionIdentity,
    hidesReasoning = false,
    readers: AnthropicReaders = {},
    paused: readonly AnthropicContentBlock[] = [],
  ) {
    super(identity, hidesReasoning, readers, paused);
    this.searches = new SearchTracker(paused);
    this.content = [...paused];
    this.length = paused.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0);
  }

  /** The turn, if it is paused and can be continued. */
  get pausedResponse(): PausedResponse | undefined {
    return this.turn;
  }

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
      this.retain(start, JSON.stringify(start).length);
      this.pendingStatuses.push(this.searches.end(start));
      return '';
    }
    this.trackedBlocks.set(index, { start, text: '', citations: [], signature: '' });
    return super.handleBlockStart(index, start);
  }

  protected override handleContent(index: number, kind: AnthropicBlockKind, text: string): string {
    const trackedBlock = this.trackedBlocks.get(index);
    if (trackedBlock) trackedBlock.text += text;
    return trackedBlock?.start.type === 'server_tool_use' ? '' : super.handleContent(index, kind, text);
  }

  protected override handleDelta(index: number, delta: NonNullable<AnthropicEvent['delta']>): string {
    const trackedBlock = this.trackedBlocks.get(index);
    if (delta.citation) trackedBlock?.citations.push(delta.citation);
    if (trackedBlock && delta.signature !== undefined) trackedBlock.signature += delta.signature;
    return super.handleDelta(index, delta);
  }

  protected override handleBlockStop(index: number): string {
    const trackedBlock = this.trackedBlocks.get(index);
    this.trackedBlocks.delete(index);
    const closed = super.handleBlockStop(index);
    if (!trackedBlock) return closed;
    const { text, citations } = trackedBlock;
    const block = toCompleteBlock(trackedBlock);
    this.retain(block, text.length + JSON.stringify(citations).length);
    if (block.type === 'server_tool_use' && block.name === WEB_SEARCH)
      this.pendingStatuses.push(this.searches.begin(block.id, block.input));
    if (block.type !== 'text') return closed;
    const from = this.length;
    this.length += block.text.length;
    const annotations = toAnnotations(citations, from, this.length);
    return annotations.length === 0 ? closed : closed + this.toDeltaChunk({ annotations });
  }

  /** A turn that can be continued has no end yet. */
  protected override finish(stop: MessageStop): string {
    this.turn = stop.stop_reason === PAUSE_TURN && this.isRetained ? createPausedResponse(this.content) : undefined;
    if (!this.turn) return super.finish(stop);
    this.hasFinishReason = true;
    return '';
  }

  private retain(block: AnthropicContentBlock, characters: number): void {
    this.contentLength += characters;
    if (this.isRetained) this.content.push(block);
    else this.content.length = 0;
  }

  /** Whether the content of the turn is complete. */
  private get isRetained(): boolean {
    return this.contentLength <= MAX_PAUSED_CHARACTERS;
  }

  protected override recordUsage(usage: unknown): void {
    this.searches.recordUsage(usage);
    super.recordUsage(usage);
  }
}

/** Returns a block as a complete message contains it. */
function toCompleteBlock({ start, text, citations, signature }: TrackedBlock): AnthropicContentBlock {
  const decoded = unescapeJsonText(text);
  switch (start.type) {
    case 'text':
      return { type: 'text', text: decoded, ...(citations.length > 0 ? { citations } : {}) };
    case 'thinking':
      return { ...start, thinking: decoded, signature: signature || (start.signature ?? '') };
    case 'server_tool_use':
      return { ...start, input: parseToolInput(decoded) ?? start.input };
    default:
      return start;
  }
}

/** @param text the content of a JSON string, in Latin-1 */
function unescapeJsonText(text: string): string {
  try {
    return JSON.parse(`"${Buffer.from(text, 'latin1').toString('utf8')}"`);
  } catch {
    return ''; // invalid JSON
  }
}

function parseToolInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // invalid JSON
  }
}
