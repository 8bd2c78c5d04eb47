import type { Receipt } from '../../billing/order.ts';
import { formatSseEvent } from '../../wire/sse.ts';
import { type SseOutput, TranslatingWriter, type TypedEvent } from '../chat/translating-writer.ts';
import type { MessageBuilder } from './message-builder.ts';
import { toMessageUsage } from './usage.ts';

/** Where the events of a message are sent. */
export interface MessageEventOutput extends SseOutput {
  /** Anthropic's description of an error that ends a message: `{"type":"error", …}`. */
  toErrorEvent(error: unknown): TypedEvent;
}

export class MessageWriter extends TranslatingWriter<MessageEventOutput, MessageBuilder> {
  /** A message that broke off has no end, so that nobody takes it for a whole one; its error says what it came to. */
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
