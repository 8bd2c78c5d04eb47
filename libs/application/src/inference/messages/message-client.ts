import type { Receipt } from '../../paying/purchase.ts';
import type { EventOutlet } from '../responses/response-client.ts';
import type { AnswerClient, Source } from '../vocabulary/answers.ts';
import { parsedEvent, sseDataIn, sseEvent } from '../vocabulary/sse.ts';
import type { SearchNote } from '../vocabulary/web-search.ts';
import { type MessageDraft, usageWire } from './message-draft.ts';
import type { MessageEvent } from './output.ts';

/** Where the events of a message are sent. */
export interface MessageOutlet extends Omit<EventOutlet, 'explain'> {
  /** Anthropic's description of an error that ends a message: `{"type":"error", …}`. */
  explain(error: unknown): MessageEvent;
}

/** Takes the events of a chat, and sends those of a message: each as soon as it comes. */
export class MessageClient implements AnswerClient {
  constructor(
    private readonly outlet: MessageOutlet,
    private readonly draft: MessageDraft,
  ) {}

  get started(): boolean {
    return this.outlet.started;
  }

  get left(): Promise<void> {
    return this.outlet.left;
  }

  get keeps(): boolean {
    return this.outlet.keeps;
  }

  get listening(): boolean {
    return this.outlet.listening;
  }

  stillWaiting(): void {
    this.outlet.stillWaiting();
  }

  begin(source: Source): void {
    this.draft.answeredBy(source);
    this.outlet.begin();
    void this.send([this.draft.started()]);
  }

  /** @throws UpstreamFailure when an event cannot be read */
  write(events: Uint8Array): Promise<void> | undefined {
    if (!this.listening) return undefined;
    return this.send(sseDataIn(events).flatMap((data) => this.draft.accept(parsedEvent(data))));
  }

  searched(search: SearchNote): Promise<void> | undefined {
    return this.send(this.draft.search(search));
  }

  /** A message that broke off has no end, so that nobody takes it for a whole one; its error says what it came to. */
  end(receipt: Receipt | undefined, failure?: unknown): void {
    const { outlet, draft } = this;
    const last = failure
      ? [{ ...outlet.explain(failure), ...(receipt ? { usage: usageWire(receipt) } : {}) }]
      : draft.ended(receipt);
    outlet.finish(last.map(written).join(''));
  }

  private send(events: readonly MessageEvent[]): Promise<void> | undefined {
    if (events.length === 0 || !this.listening) return undefined;
    return this.outlet.write(Buffer.from(events.map(written).join('')));
  }
}

function written(event: MessageEvent): string {
  return sseEvent(JSON.stringify(event), event.type);
}
