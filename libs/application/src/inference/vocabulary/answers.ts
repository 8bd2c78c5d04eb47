/** How an answer reaches the client. */
import type { Model } from '#catalogue';
import type { UpstreamFailure } from '../../failures.ts';
import type { StreamClient } from '../../paying/paying.ts';
import type { EndpointAnswer, Receipt } from '../../paying/purchase.ts';
import type { Language, StreamedAnswer, WholeAnswer } from './providers.ts';
import type { SearchNote } from './web-search.ts';

/** The endpoint that answers, and its protocol. */
export interface Source {
  /** The id of the model, by whichever name it was requested. */
  readonly model: string;
  readonly language: Language;
  /** The slug of the endpoint. */
  readonly provider: string;
}

/** How long clients wait in silence. */
export abstract class ClientPatience {
  /** Milliseconds from the hold to the first sign of life of a stream; shorter waits that fail have a status. */
  abstract readonly firstCommentMs: number;
}

/** Where a streamed answer goes. */
export interface AnswerClient extends StreamClient {
  /** Whether anyone receives what is written: the client, or a record that it can still fetch. */
  readonly listening: boolean;
  /** Starts the answer; until then nothing of it is sent. */
  begin(source: Source): void;
  /** Shows that there will be an answer, though nothing of it is there yet: a failure can then only be a part of it. */
  stillWaiting?(): void;
  /** Resolves when there is room for more. Everything is written, also when the client has gone. */
  write(events: Uint8Array): Promise<void> | undefined;
  /** Takes searches as they begin and end, between the events that they stand between. */
  searched?(search: SearchNote): Promise<void> | undefined;
}

/** An answer in one piece, before it is paid. */
export interface WholeDraft extends Source {
  readonly body: Readonly<Record<string, unknown>>;
  /** The searches that were made for it, as they ended. */
  readonly searches: readonly SearchNote[];
}

export interface WholeChat extends WholeDraft {
  readonly receipt: Receipt;
}

/** How an answer is made, once its money is held. One of the two is called, once. */
export interface Answering {
  /** @throws UpstreamFailure when there is no answer, and the payer owes nothing */
  whole(): Promise<WholeDraft>;
  /**
   * Begins the client when there is an answer, and writes all of it.
   * @returns what broke the answer off, if the payer owes what the client had of it
   * @throws UpstreamFailure when the payer owes nothing
   */
  stream(client: AnswerClient): Promise<UpstreamFailure | undefined>;
}

export function sourceOf(
  { id: model }: Model,
  { answer, endpoint }: EndpointAnswer<WholeAnswer | StreamedAnswer>,
): Source {
  return { model, language: answer.language, provider: endpoint.slug };
}
