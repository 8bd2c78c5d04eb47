import { type ChatClient, type ResponseEvent, type SearchNote, UpstreamFailure } from '#application';
import type { SseClient } from '../edge/sse.ts';
import type { ChatChoice, ResponseDraft, ResponseWire } from './responses-wire.ts';

const EVENT_END = '\n\n';
const DATA = 'data: ';

/** A client that is told the events of a response, and itself receives the chunks of a chat: each as soon as it comes. */
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

  /** @throws UpstreamFailure when a chunk cannot be read */
  write(chunks: Uint8Array): Promise<void> | undefined {
    if (!this.heard) return undefined;
    return this.tell(choicesIn(chunks).flatMap((choice) => this.draft.accept(choice)));
  }

  searched(search: SearchNote): Promise<void> | undefined {
    return this.tell(this.draft.output.search(search));
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

/** Only one choice is ever asked for. */
function choicesIn(chunks: Uint8Array): readonly ChatChoice[] {
  const events = Buffer.from(chunks.buffer, chunks.byteOffset, chunks.byteLength).toString('utf8').split(EVENT_END);
  return events.filter((event) => event !== '').flatMap((event) => parsed(event).choices?.slice(0, 1) ?? []);
}

function parsed(event: string): { readonly choices?: readonly ChatChoice[] } {
  try {
    return JSON.parse(event.slice(DATA.length));
  } catch (cause) {
    throw new UpstreamFailure('upstream_error', 'The upstream sent a chunk that is not JSON', { cause });
  }
}
