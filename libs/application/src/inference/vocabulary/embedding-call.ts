/** Embedding calls to a vendor, and their answers. */
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
  /** What the upstream calls the answer, where it does: by it a line of its invoice can be found. */
  readonly vendorId: string | undefined;
}
