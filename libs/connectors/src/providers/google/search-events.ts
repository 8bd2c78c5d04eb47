import type { SearchStatus } from '#application';
import { type ForwardEvents, NO_EVENTS } from '../../http/stream-relay.ts';
import { GeminiEventTranslator } from './chat-events.ts';
import type { Candidate, GenerateContentResponse } from './chat-outcome.ts';
import type { OutputPart } from './chat-parts.ts';
import { GroundingTracker } from './grounding.ts';

/**
 * Translates a stream with Google's search: forwards its searches, and its sources as annotations. Google reports both
 * after the text, usually in the last event. The annotations come first, because a search ends the text.
 */
export class GeminiSearchTranslator extends GeminiEventTranslator {
  private readonly grounding = new GroundingTracker();
  private content = '';
  private pendingStatuses: readonly SearchStatus[] = [];
  /** The last chunk, which follows the searches. */
  private pendingEnd = '';

  /** Number of searches that Google invoices, as far as it has reported them. */
  get invoiced(): number {
    return this.grounding.invoiced;
  }

  /** Forwards each search at its position between the events. */
  protected override translateEvents(events: readonly string[], forward: ForwardEvents): void {
    for (const event of events) {
      super.translateEvents([event], forward);
      for (const status of this.pendingStatuses) {
        forward(NO_EVENTS, { ...status, state: 'searching' });
        forward(NO_EVENTS, status);
      }
      this.pendingStatuses = [];
      if (this.pendingEnd !== '') forward(Buffer.from(this.pendingEnd, 'latin1'));
      this.pendingEnd = '';
    }
  }

  protected override handlePart(part: OutputPart): string {
    if (part.kind === 'text') this.content += part.text;
    return super.handlePart(part);
  }

  protected override handleMetadata(event: GenerateContentResponse): string {
    const { searches, annotations } = this.grounding.record(event, this.content);
    this.pendingStatuses = searches;
    return annotations.length === 0 ? '' : this.formatChunk({ annotations });
  }

  protected override finish(candidate: Candidate, event: GenerateContentResponse): string {
    this.pendingEnd = super.finish(candidate, event);
    return '';
  }
}
