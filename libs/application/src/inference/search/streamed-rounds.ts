import type { CompletionIdentity, CompletionStream } from '../../providers/provider.ts';
import type { SearchResult, SearchStatus } from '../../providers/web-search.ts';
import type { CompletionWriter } from '../chat/completion-writer.ts';
import { createCitationEvent } from './results.ts';
import { RoundEvents } from './round-events.ts';
import type { RoundCollector, RoundOutput } from './search-tool.ts';

/** Forwards the rounds of a streamed completion to the client as they arrive. */
export class StreamedRounds implements RoundCollector<CompletionStream> {
  private readonly events: RoundEvents;

  constructor(
    private readonly identity: CompletionIdentity,
    tool: string,
    private readonly client: CompletionWriter,
  ) {
    this.events = new RoundEvents(identity, tool);
  }

  get hasDelivered(): boolean {
    return this.events.hasDelivered;
  }

  get isAbandoned(): boolean {
    return !this.client.isListening;
  }

  async collectRound(completion: CompletionStream): Promise<RoundOutput> {
    await completion.pipeTo((events) => this.write(this.events.filterEvents(events)));
    return this.events.endRound();
  }

  recordSearch(search: SearchStatus): Promise<void> | undefined {
    return this.client.writeSearch?.(search);
  }

  cite(results: readonly SearchResult[]): Promise<void> | undefined {
    return this.write(createCitationEvent(this.identity, results));
  }

  end(reason: string): Promise<void> | undefined {
    return this.write(this.events.createEndEvent(reason));
  }

  private write(events: Uint8Array | undefined): Promise<void> | undefined {
    return events && this.client.write(events);
  }
}
