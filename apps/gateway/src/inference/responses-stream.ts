import { type ChatClient, type ResponseEvent, type SearchNote, type Thing, UpstreamFailure } from '#application';
import type { SseClient } from '../edge/sse.ts';
import type { ResponseDraft, ResponseWire } from './responses-wire.ts';

const EVENT_END = '\n\n';
const DATA = 'data: ';

/** A client that is told the events of a response, and itself receives those of an upstream: each as soon as it comes. */
export class ResponsesClient implements ChatClient {
  private sequence = 0;

  constructor(
    private readonly client: SseClient,
    private readonly draft: ResponseDraft,
  ) {}

  get gone(): boolean {
    return this.client.gone;
  }

  get heard(): boolean {
    return this.client.heard;
  }

  begin(): void {
    const response = this.draft.begun();
    void this.tell(['response.created', 'response.in_progress'].map((type) => ({ type, response })));
  }

  /** @throws UpstreamFailure when an event cannot be read */
  write(events: Uint8Array): Promise<void> | undefined {
    if (!this.heard) return undefined;
    return this.tell(dataIn(events).flatMap((data) => this.draft.accept(data)));
  }

  searched(search: SearchNote): Promise<void> | undefined {
    return this.tell(this.draft.search(search));
  }

  /** All has come: ends what is still open. */
  complete(): void {
    void this.tell(this.draft.end());
  }

  /** Tells how it ended. */
  end(response: ResponseWire): void {
    const end = this.event({ type: `response.${response.status}`, response });
    this.client.end(`${end}${DATA}[DONE]${EVENT_END}`);
  }

  private tell(events: readonly ResponseEvent[]): Promise<void> | undefined {
    if (events.length === 0 || !this.heard) return undefined;
    return this.client.write(Buffer.from(events.map((event) => this.event(event)).join('')));
  }

  private event({ type, ...more }: ResponseEvent): string {
    const data = JSON.stringify({ type, sequence_number: this.sequence++, ...more });
    return `event: ${type}\n${DATA}${data}${EVENT_END}`;
  }
}

function dataIn(bytes: Uint8Array): readonly Thing[] {
  const events = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8').split(EVENT_END);
  return events.filter((event) => event !== '').map(parsed);
}

function parsed(event: string): Thing {
  try {
    return JSON.parse(event.slice(DATA.length));
  } catch (cause) {
    throw new UpstreamFailure('upstream_error', 'The upstream sent an event that is not JSON', { cause });
  }
}
