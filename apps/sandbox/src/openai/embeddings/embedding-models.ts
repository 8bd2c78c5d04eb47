/** The embedding models of the simulated providers. Their prices are independent of the gateway's catalogue. */
import { parseUsd } from '#kernel';
import { invalidRequestError } from '../errors.ts';
import { findModel, type OpenAiProvider } from '../models.ts';

export interface EmbeddingModel {
  readonly id: string;
  /** The model name in responses. */
  readonly snapshot: string;
  /** Determines the vectors: a model has the same vectors at every provider. */
  readonly weights: string;
  /** Maximum tokens of one input. */
  readonly context: number;
  readonly dimensions: number;
  readonly supportsDimensions: boolean;
  readonly price: Readonly<Record<'input' | 'cachedInput' | 'output' | 'request', bigint>>;
}

const TOKENS_PER_PRICE = 1_000_000n;

type Traits = Pick<EmbeddingModel, 'context' | 'dimensions'> &
  Partial<Pick<EmbeddingModel, 'snapshot' | 'supportsDimensions'>>;

function defineModel(id: string, usdPerMillion: string, traits: Traits): EmbeddingModel {
  const input = parseUsd(usdPerMillion) / TOKENS_PER_PRICE;
  const price = { input, cachedInput: input, output: 0n, request: 0n };
  const weights = id.slice(id.lastIndexOf('/') + 1).toLowerCase();
  return { id, snapshot: id, weights, supportsDimensions: true, ...traits, price };
}

const QWEN = { context: 32_768, dimensions: 4_096 };

/** By provider. */
export const EMBEDDING_MODELS: Readonly<Record<string, readonly EmbeddingModel[]>> = {
  openai: [
    defineModel('text-embedding-3-small', '0.02', { context: 8_192, dimensions: 1_536 }),
    defineModel('text-embedding-3-large', '0.13', { context: 8_192, dimensions: 3_072 }),
    defineModel('text-embedding-ada-002', '0.1', {
      snapshot: 'text-embedding-ada-002-v2',
      context: 8_192,
      dimensions: 1_536,
      supportsDimensions: false,
    }),
  ],
  openrouter: [defineModel('qwen/qwen3-embedding-8b', '0.01', QWEN)],
  deepinfra: [defineModel('Qwen/Qwen3-Embedding-8B', '0.01', QWEN)],
};

/** @throws HttpError 404 for an unknown model, 403 for a chat model */
export function findEmbeddingModel(provider: OpenAiProvider, id: string): EmbeddingModel {
  const model = EMBEDDING_MODELS[provider.name]?.find((candidate) => candidate.id === id);
  if (model) return model;
  findModel(provider, id);
  throw invalidRequestError(403, 'You are not allowed to generate embeddings from this model');
}
