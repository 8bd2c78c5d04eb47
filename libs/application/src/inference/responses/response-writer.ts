import type { Receipt } from '../../billing/order.ts';
import { formatSseEvent, SSE_DONE } from '../../wire/sse.ts';
import type { CompletionSource } from '../chat/completion-writer.ts';
import { type SseOutput, TranslatingWriter, type TypedEvent } from '../chat/translating-writer.ts';
import type { ResponseBuilder, ResponseError, ResponseJson } from './response-builder.ts';

/** Where the events of a response are sent. */
export interface ResponseEventOutput extends SseOutput {
  /** The description of an error that ends a response. */
  toResponseError(error: unknown): ResponseError;
}

export class ResponseWriter extends TranslatingWriter<ResponseEventOutput, ResponseBuilder> {
  private sequence = 0;
  private provider = '';
  private isAnnounced = false;

  /** @param storeResponse the response as it is answered once it is kept, or is not */
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
    // A client that has gone, and cannot ask again, will never have all of it: there is nothing to continue from.
    if (this.isListening) this.finish(await this.storeResponse(draft.build(receipt), this.provider));
  }

  /** Every response begins with these, also one that fails before anything of it is there. */
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
