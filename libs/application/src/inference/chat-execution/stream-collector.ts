/** Collects the SSE events of a completion into the equivalent non-streaming completion. */

import { type JsonObject } from '#kernel';
import type { CompletionIdentity } from '../../providers/provider.ts';
import type { SearchStatus } from '../../providers/web-search.ts';

import { parseEventJson, parseSseEvents } from '../../wire/sse.ts';
import { ChatChunkCollector } from '../chat/chat-chunk-collector.ts';
import type { CompletionSink } from '../chat/completion-writer.ts';
import { NativeOutput } from '../responses/native-output.ts';

export class StreamCollector implements CompletionSink {
  private readonly native: NativeOutput | undefined;
  private readonly chat = new ChatChunkCollector();
  private finishedSearches: SearchStatus[] = [];

  constructor(
    protocol: 'chat' | 'responses',
    private readonly identity: CompletionIdentity,
  ) {
    this.native = protocol === 'responses' ? new NativeOutput(true) : undefined;
  }

  /** @throws UpstreamError if an event is not JSON or has an invalid choice */
  write(events: Uint8Array): undefined {
    const target = this.native ?? this.chat;
    for (const data of parseSseEvents(events)) target.accept(parseEventJson(data));
  }

  writeSearch(search: SearchStatus): undefined {
    if (search.state !== 'searching') this.finishedSearches.push(search);
  }

  get searches(): readonly SearchStatus[] {
    return this.finishedSearches;
  }

  get body(): JsonObject {
    const { native, chat, identity } = this;
    if (!native) return { ...chat.body, ...identity };
    const details =
      native.incompleteReason === undefined ? {} : { incomplete_details: { reason: native.incompleteReason } };
    return { object: 'response', output: native.items, ...details };
  }
}
