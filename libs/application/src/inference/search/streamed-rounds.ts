import type { CompletionIdentity, CompletionStream } from '../../providers/provider.ts';
import type { SearchResult, SearchStatus } from '../../providers/web-search.ts';
import type { CompletionWriter } from '../chat/completion-writer.ts';
import { citationEvent } from './results.ts';
import { RoundEvents } from './round-events.ts';
import type { RoundCollector, RoundOutput } from './search-tool.ts';

/** Rounds that are sent as they come. */
export class StreamedRounds implements RoundCollector<CompletionStream> {
  private readonly events: RoundEvents;

  constructor(
    private readonly identity: CompletionIdentity,
    tool: string,
    private readonly client: CompletionWriter,
  ) {
    this.events = new RoundEvents(identity, tool);
  }

  get delivered(): boolean {
    return this.events.delivered;
  }

  get abandoned(): boolean {
    return !this.client.listening;
  }

  async take(answer: CompletionStream): Promise<RoundOutput> {
    await answer.relayTo((events) => this.write(this.events.pass(events)));
    return this.events.endRound();
  }

  note(search: SearchStatus): Promise<void> | undefined {
    return this.client.searched?.(search);
  }

  cite(found: readonly SearchResult[]): Promise<void> | undefined {
    return this.write(citationEvent(this.identity, found));
  }

  end(reason: string): Promise<void> | undefined {
    return this.write(this.events.finished(reason));
  }

  private write(events: Uint8Array | undefined): Promise<void> | undefined {
    return events && this.client.write(events);
  }
}
