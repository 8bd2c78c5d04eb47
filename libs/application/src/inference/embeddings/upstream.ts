/** The port through which embeddings reach the world. Adapters: `libs/connectors`. */
import type { Usage } from '#domain';
import type { Hold } from '../../paying/payer.ts';

export interface EmbeddingCall {
  /** Name of the upstream, as the catalogue has it. */
  readonly upstream: string;
  /** The request in OpenAI's shape, with the upstream's name of the model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** How many vectors are wanted. */
  readonly count: number;
  readonly signal: AbortSignal;
}

export interface Embeddings {
  /** OpenAI's list of embeddings as the upstream wrote it, in JSON: the vectors are passed on untouched. */
  readonly data: string;
  readonly usage: Usage | undefined;
}

export abstract class EmbeddingUpstreams {
  /** @throws UpstreamFailure when there is no answer */
  abstract embed(hold: Hold, call: EmbeddingCall): Promise<Embeddings>;
}
