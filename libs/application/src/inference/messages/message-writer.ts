import type { Receipt } from '../../billing/purchase.ts';
import { sseEvent } from '../../wire/sse.ts';
import { EventClient, type EventOutlet, type TypedEvent } from '../chat/translating-writer.ts';
import type { MessageDraft } from './message-builder.ts';
import { usageWire } from './usage.ts';

/** Where the events of a message are sent. */
export interface MessageOutlet extends EventOutlet {
  /** Anthropic's description of an error that ends a message: `{"type":"error", …}`. */
  explain(error: unknown): TypedEvent;
}

export class MessageClient extends EventClient<MessageOutlet, MessageDraft> {
  /** A message that broke off has no end, so that nobody takes it for a whole one; its error says what it came to. */
  override end(receipt: Receipt | undefined, failure?: unknown): void {
    const { outlet, draft } = this;
    const last = failure
      ? [{ ...outlet.explain(failure), ...(receipt ? { usage: usageWire(receipt) } : {}) }]
      : draft.ended(receipt && usageWire(receipt));
    outlet.finish(last.map((event) => this.written(event)).join(''));
  }

  protected override announce(): void {
    void this.send([this.draft.started()]);
  }

  protected override written(event: TypedEvent): string {
    return sseEvent(JSON.stringify(event), event.type);
  }
}
