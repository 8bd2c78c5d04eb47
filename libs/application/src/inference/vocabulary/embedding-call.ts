/** Embeddings as they are asked for and had. */
import type { Usage } from '#domain';

export interface EmbeddingCall {
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
