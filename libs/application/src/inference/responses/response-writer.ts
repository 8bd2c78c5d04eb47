import type { Receipt } from '../../billing/order.ts';
import { formatSseEvent, SSE_DONE } from '../../wire/sse.ts';
import type { CompletionSource } from '../chat/completion-writer.ts';
import { type SseOutput, TranslatingWriter, type TypedEvent } from '../chat/translating-writer.ts';
import type { ResponseBuilder, ResponseError, ResponseJson } from './response-builder.ts';

/** The HTTP response to which the events of a streamed response are written. */
export interface ResponseEventOutput extends SseOutput {
  /** Converts an error to the `error` object of the failed response. */
  toResponseError(error: unknown): ResponseError;
}

export class ResponseWriter extends TranslatingWriter<ResponseEventOutput, ResponseBuilder> {
  private sequence = 0;
  private provider = '';
  private isAnnounced = false;

  /** @param storeResponse tries to store the response; returns it with `store` false if it could not be stored */
  constructor(
    output: ResponseEventOutput,
    draft: ResponseBuilder,
    private readonly storeResponse: (response: ResponseJson, provider: string) => Promise<ResponseJson>,
  ) {
    super(output, draft);
  }

  override begin(source: CompletionSource): void {
    this.provider = source.provider;
    super.begin(source);
  }

  override async end(receipt: Receipt | undefined, failure?: unknown): Promise<void> {
    const { draft, output } = this;
    if (failure) {
      this.announce();
      return this.finish(draft.build(receipt, output.toResponseError(failure)));
    }
    void this.send(draft.end());
    // After a disconnect, a response is stored only if the client sent `store: true` or can repeat the request.
    if (this.isListening) this.finish(await this.storeResponse(draft.build(receipt), this.provider));
  }

  /** Sends the first events. A response that fails without any output has them too. */
  protected override announce(): void {
    if (this.isAnnounced) return;
    this.isAnnounced = true;
    const response = this.draft.buildInitial();
    void this.send(['response.created', 'response.in_progress'].map((type) => ({ type, response })));
  }

  protected override formatEvent({ type, ...fields }: TypedEvent): string {
    return formatSseEvent(JSON.stringify({ type, sequence_number: this.sequence++, ...fields }), type);
  }

  private finish(response: ResponseJson): void {
    const end = this.formatEvent({ type: `response.${response.status}`, response });
    this.output.finish(end + formatSseEvent(SSE_DONE));
  }
}
