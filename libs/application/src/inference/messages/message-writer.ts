import type { Receipt } from '../../billing/purchase.ts';
import { formatSseEvent } from '../../wire/sse.ts';
import { type SseOutput, TranslatingWriter, type TypedEvent } from '../chat/translating-writer.ts';
import type { MessageBuilder } from './message-builder.ts';
import { toMessageUsage } from './usage.ts';

/** Where the events of a message are sent. */
export interface MessageEventOutput extends SseOutput {
  /** Anthropic's description of an error that ends a message: `{"type":"error", …}`. */
  explain(error: unknown): TypedEvent;
}

export class MessageWriter extends TranslatingWriter<MessageEventOutput, MessageBuilder> {
  /** A message that broke off has no end, so that nobody takes it for a whole one; its error says what it came to. */
  override end(receipt: Receipt | undefined, failure?: unknown): void {
    const { outlet, draft } = this;
    const last = failure
      ? [{ ...outlet.explain(failure), ...(receipt ? { usage: toMessageUsage(receipt) } : {}) }]
      : draft.ended(receipt && toMessageUsage(receipt));
    outlet.finish(last.map((event) => this.written(event)).join(''));
  }

  protected override announce(): void {
    void this.send([this.draft.started()]);
  }

  protected override written(event: TypedEvent): string {
    return formatSseEvent(JSON.stringify(event), event.type);
  }
}
