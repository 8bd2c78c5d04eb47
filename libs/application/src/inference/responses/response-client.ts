import type { Receipt } from '../../paying/purchase.ts';
import type { AnswerClient, Source } from '../vocabulary/answers.ts';
import { DONE, parsedEvent, sseDataIn, sseEvent } from '../vocabulary/sse.ts';
import type { SearchNote } from '../vocabulary/web-search.ts';
import type { ResponseEvent } from './output-items.ts';
import type { ResponseDraft, ResponseError, ResponseWire } from './response-draft.ts';

/** Where the events of a response are sent. */
export interface EventOutlet {
  readonly started: boolean;
  readonly left: Promise<void>;
  readonly keeps: boolean;
  readonly listening: boolean;
  begin(): void;
  stillWaiting(): void;
  write(events: Uint8Array): Promise<void> | undefined;
  finish(events: string): void;
  /** The description of an error that ends a response. */
  explain(error: unknown): ResponseError;
}

/** Takes the events of an upstream, and sends those of a response: each as soon as it comes. */
export class ResponseClient implements AnswerClient {
  private sequence = 0;
  private provider = '';
  private announced = false;

  /** @param kept the response as it is answered once it is kept, or is not */
  constructor(
    private readonly outlet: EventOutlet,
    private readonly draft: ResponseDraft,
    private readonly kept: (response: ResponseWire, provider: string) => Promise<ResponseWire>,
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

  begin(source: Source): void {
    this.provider = source.provider;
    this.draft.answeredBy(source);
    this.outlet.begin();
    this.announce();
  }

  stillWaiting(): void {
    this.outlet.stillWaiting();
  }

  /** @throws UpstreamFailure when an event cannot be read */
  write(events: Uint8Array): Promise<void> | undefined {
    if (!this.listening) return undefined;
    return this.send(sseDataIn(events).flatMap((data) => this.draft.accept(parsedEvent(data))));
  }

  searched(search: SearchNote): Promise<void> | undefined {
    return this.send(this.draft.search(search));
  }

  async end(receipt: Receipt | undefined, failure?: unknown): Promise<void> {
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
  private announce(): void {
    if (this.announced) return;
    this.announced = true;
    const response = this.draft.started();
    void this.send(['response.created', 'response.in_progress'].map((type) => ({ type, response })));
  }

  private finish(response: ResponseWire): void {
    const end = this.event({ type: `response.${response.status}`, response });
    this.outlet.finish(end + sseEvent(DONE));
  }

  private send(events: readonly ResponseEvent[]): Promise<void> | undefined {
    if (events.length === 0 || !this.listening) return undefined;
    return this.outlet.write(Buffer.from(events.map((event) => this.event(event)).join('')));
  }

  private event({ type, ...more }: ResponseEvent): string {
    return sseEvent(JSON.stringify({ type, sequence_number: this.sequence++, ...more }), type);
  }
}
