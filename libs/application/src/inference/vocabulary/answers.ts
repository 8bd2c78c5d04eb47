/** How an answer reaches whoever asked for it. */
import type { Model } from '#catalogue';
import { UpstreamFailure } from '../../failures.ts';
import type { Receipt, Served } from '../../paying/paid-calls.ts';
import type { RunningTask } from '../../paying/running.ts';
import type { Language, StreamedAnswer, WholeAnswer } from './chat-upstream.ts';
import type { SearchNote } from './searching.ts';

/** Where a streamed answer goes. */
export interface ChatClient {
  readonly gone: boolean;
  /** Whether what is written gets anywhere: to the client, or to where it can still have it from. */
  readonly heard: boolean;
  /** Resolves when there is room for more. It is told of everything, also when it is gone. */
  write(events: Uint8Array): Promise<void> | undefined;
  /** Told of searches as they begin and end, between the events that they stand between. */
  searched?(search: SearchNote): Promise<void> | undefined;
}

/** Who answers, and in what. */
export interface Source {
  /** The id of the model, whatever it was asked for by. */
  readonly model: string;
  readonly language: Language;
  /** The slug of the endpoint. */
  readonly provider: string;
}

export interface WholeChat extends Source {
  readonly kind: 'whole';
  readonly body: Readonly<Record<string, unknown>>;
  readonly receipt: Receipt;
  /** The searches that were made for it, as they ended. */
  readonly searches?: readonly SearchNote[];
}

export interface StreamedChat extends Source {
  readonly kind: 'stream';
  /** Must be called: it settles. Resolves when the charge is durable; `failure` says why the answer broke off. */
  relayTo(client: ChatClient): Promise<Relayed>;
}

export interface Relayed {
  readonly receipt: Receipt;
  readonly failure: UpstreamFailure | undefined;
}

export type ChatAnswer = WholeChat | StreamedChat;

export function sourceOf({ id: model }: Model, { answer, endpoint }: Served<WholeAnswer | StreamedAnswer>): Source {
  return { model, language: answer.language, provider: endpoint.slug };
}

/** When a client goes, its answer is read on for a while: it will be invoiced. */
export class Patience {
  private ends: NodeJS.Timeout | undefined;

  constructor(
    private readonly client: ChatClient,
    private readonly task: RunningTask,
    private readonly drainTimeoutMs: number,
  ) {}

  /** To be asked whenever there is something for the client. */
  check(): void {
    if (this.client.gone) this.ends ??= setTimeout(() => this.task.cutShort(clientGone()), this.drainTimeoutMs);
  }

  over(): void {
    clearTimeout(this.ends);
  }
}

export function clientGone(): UpstreamFailure {
  return new UpstreamFailure('client_disconnected', 'The client went away and the answer took too long');
}
