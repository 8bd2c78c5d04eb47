/** The port through which vendors are reached. Adapters: `libs/connectors`. */
import type { Capability } from '#catalogue';
import type { Hold } from '../../paying/payer.ts';
import type { ChatCall, StreamedAnswer, WholeAnswer } from './chat-upstream.ts';
import type { EmbeddingCall, Embeddings } from './embedding-call.ts';
import type { Found, SearchQuery } from './web-search.ts';

/**
 * What a vendor can do. Each makes one call and resolves when the first byte of the answer is there, or else all of it.
 * @throws UpstreamFailure when there is no answer
 */
export interface Provider {
  chat?(call: ChatCall): Promise<WholeAnswer | StreamedAnswer>;
  /** Calls the vendor with Responses. */
  responses?(call: ChatCall): Promise<WholeAnswer | StreamedAnswer>;
  embeddings?(call: EmbeddingCall): Promise<Embeddings>;
  search?(query: SearchQuery): Promise<Found>;
  close(): Promise<void>;
}

export type { Capability };

export abstract class Providers {
  /**
   * What a vendor can do, for a caller with a hold.
   * @param upstream the vendor's slug
   * @throws UpstreamFailure when it is not available here
   */
  abstract of<C extends Capability>(hold: Hold, upstream: string, capability: C): NonNullable<Provider[C]>;
}
