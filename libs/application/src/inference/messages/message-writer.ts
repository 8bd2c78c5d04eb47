import type { Receipt } from '../../billing/order.ts';
import { formatSseEvent } from '../../wire/sse.ts';
import { type SseOutput, TranslatingWriter, type TypedEvent } from '../chat/translating-writer.ts';
import type { MessageBuilder } from './message-builder.ts';
import { toMessageUsage } from './usage.ts';

/** The HTTP response that the events of a message are written to. */
export interface MessageEventOutput extends SseOutput {
  /** Returns Anthropic's event for an error that ends a message: `{"type":"error", …}`. */
  toErrorEvent(error: unknown): TypedEvent;
}

export class MessageWriter extends TranslatingWriter<MessageEventOutput, MessageBuilder> {
  /** Ends an interrupted message with an error event instead of `message_stop`. The event includes any known usage. */
  override end(receipt: Receipt | undefined, failure?: unknown): void {
    const { output, draft } = this;
    const last = failure
      ? [{ ...output.toErrorEvent(failure), ...(receipt ? { usage: toMessageUsage(receipt) } : {}) }]
      : draft.createEndEvents(receipt && toMessageUsage(receipt));
    output.finish(last.map((event) => this.formatEvent(event)).join(''));
  }

  protected override announce(): void {
    void this.send([this.draft.createStartEvent()]);
  }

  protected override formatEvent(event: TypedEvent): string {
    return formatSseEvent(JSON.stringify(event), event.type);
  }
}
