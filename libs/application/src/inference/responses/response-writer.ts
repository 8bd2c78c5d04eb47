import type { Receipt } from '../../billing/purchase.ts';
import { DONE, formatSseEvent } from '../../wire/sse.ts';
import type { CompletionSource } from '../chat/completion-writer.ts';
import { type SseOutput, TranslatingWriter, type TypedEvent } from '../chat/translating-writer.ts';
import type { ResponseBuilder, ResponseError, ResponseJson } from './response-builder.ts';

/** Where the events of a response are sent. */
export interface ResponseEventOutput extends SseOutput {
  /** The description of an error that ends a response. */
  explain(error: unknown): ResponseError;
}

export class ResponseWriter extends TranslatingWriter<ResponseEventOutput, ResponseBuilder> {
  private sequence = 0;
  private provider = '';
  private announced = false;

  /** @param kept the response as it is answered once it is kept, or is not */
  constructor(
    outlet: ResponseEventOutput,
    draft: ResponseBuilder,
    private readonly kept: (response: ResponseJson, provider: string) => Promise<ResponseJson>,
  ) {
    super(outlet, draft);
  }

  override begin(source: CompletionSource): void {
    this.provider = source.provider;
    super.begin(source);
  }

  override async end(receipt: Receipt | undefined, failure?: unknown): Promise<void> {
    const { draft, outlet } = this;
    if (failure) {
      this.announce();
      return this.finish(draft.finished(receipt, outlet.explain(failure)));
    }
    void this.send(draft.end());
    // A client that has gone, and cannot ask again, will never have all of it: there is nothing to continue from.
    if (this.listening) this.finish(await this.kept(draft.finished(receipt), this.provider));
  }

  /** Every response begins with these, also one that fails before anything of it is there. */
  protected override announce(): void {
    if (this.announced) return;
    this.announced = true;
    const response = this.draft.started();
    void this.send(['response.created', 'response.in_progress'].map((type) => ({ type, response })));
  }

  protected override written({ type, ...more }: TypedEvent): string {
    return formatSseEvent(JSON.stringify({ type, sequence_number: this.sequence++, ...more }), type);
  }

  private finish(response: ResponseJson): void {
    const end = this.written({ type: `response.${response.status}`, response });
    this.outlet.finish(end + formatSseEvent(DONE));
  }
}
