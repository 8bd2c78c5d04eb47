import type { Receipt } from '../../billing/order.ts';
import { formatSseEvent } from '../../wire/sse.ts';
import type { CompletionSource } from '../chat/completion-writer.ts';
import { type SseOutput, TranslatingWriter, type TypedEvent } from '../chat/translating-writer.ts';
import type { InputUsage, MessageBuilder } from './message-builder.ts';
import type { MessageThread } from './threads.ts';
import { toInputUsage, toMessageUsage } from './usage.ts';

/** The HTTP response that the events of a message are written to. */
export interface MessageEventOutput extends SseOutput {
  /** Returns Anthropic's event for an error that ends a message: `{"type":"error", …}`. */
  toErrorEvent(error: unknown): TypedEvent;
}

interface MessageWriterOptions {
  /** An estimate, for providers that report the input tokens only at the end; never rejects. */
  readonly inputTokens: Promise<number>;
  /** Stores the message before its end is sent, so that the client can continue it at once. */
  readonly thread?: MessageThread | undefined;
}

export class MessageWriter extends TranslatingWriter<MessageEventOutput, MessageBuilder> {
  private reportedInput: InputUsage | undefined;
  /** Events that wait for the first event, which waits for the count of the input. */
  private waitingEvents: TypedEvent[] | undefined;
  private start: Promise<void> | undefined;

  constructor(
    output: MessageEventOutput,
    draft: MessageBuilder,
    private readonly options: MessageWriterOptions,
  ) {
    super(output, draft);
  }

  override begin(source: CompletionSource): void {
    const { inputUsage } = source;
    this.reportedInput = inputUsage && toInputUsage(inputUsage);
    super.begin(source);
  }

  /** Ends an interrupted message with an error event instead of `message_stop`. The event includes any known usage. */
  override end(receipt: Receipt | undefined, failure?: unknown): Promise<void> | void {
    const { output, draft } = this;
    if (this.waitingEvents) return this.start?.then(() => this.end(receipt, failure));
    const usage = receipt && toMessageUsage(receipt);
    if (failure) return this.finish([{ ...output.toErrorEvent(failure), ...(usage ? { usage } : {}) }]);
    const last = draft.createEndEvents(usage);
    const { thread } = this.options;
    // After a disconnect, the end of the message is missing.
    if (!thread || !this.isListening) return this.finish(last);
    return thread.store(draft.messageId, draft.content).then(() => this.finish(last));
  }

  private finish(events: readonly TypedEvent[]): void {
    this.output.finish(events.map((event) => this.formatEvent(event)).join(''));
  }

  protected override announce(): void {
    const { reportedInput } = this;
    // Some providers report zeros at the start.
    if (reportedInput && Object.values(reportedInput).some((tokens) => tokens > 0))
      return void this.send([this.draft.createStartEvent(reportedInput)]);
    this.waitingEvents = [];
    this.start = this.announceEstimate();
  }

  private async announceEstimate(): Promise<void> {
    const first = this.draft.createStartEvent({ input_tokens: await this.options.inputTokens });
    const events = [first, ...(this.waitingEvents ?? [])];
    this.waitingEvents = undefined;
    await super.send(events);
  }

  protected override send(events: readonly TypedEvent[]): Promise<void> | undefined {
    if (!this.waitingEvents) return super.send(events);
    this.waitingEvents.push(...events);
    return this.start;
  }

  protected override formatEvent(event: TypedEvent): string {
    return formatSseEvent(JSON.stringify(event), event.type);
  }
}
