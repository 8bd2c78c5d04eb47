/** The embedding models of the simulated provider, with its own prices. */
import { usd } from '#kernel';
import { refusal } from '../errors.ts';
import { findModel, OPENAI_ITSELF } from '../models.ts';

export interface EmbeddingModel {
  readonly id: string;
  /** What the answer calls the model. */
  readonly snapshot: string;
  readonly dimensions: number;
  readonly shortens: boolean;
  readonly price: Readonly<Record<'input' | 'cachedInput' | 'output' | 'request', bigint>>;
}

const TOKENS_PER_PRICE = 1_000_000n;

function offer(id: string, snapshot: string, dimensions: number, shortens: boolean, usdPerMillion: string) {
  const input = usd(usdPerMillion) / TOKENS_PER_PRICE;
  return { id, snapshot, dimensions, shortens, price: { input, cachedInput: input, output: 0n, request: 0n } };
}

export const EMBEDDING_MODELS: readonly EmbeddingModel[] = [
  offer('text-embedding-3-small', 'text-embedding-3-small', 1_536, true, '0.02'),
  offer('text-embedding-3-large', 'text-embedding-3-large', 3_072, true, '0.13'),
  offer('text-embedding-ada-002', 'text-embedding-ada-002-v2', 1_536, false, '0.1'),
];

/** @throws Refusal 404, or 403 for a model that only chats */
export function findEmbeddingModel(id: string): EmbeddingModel {
  const model = EMBEDDING_MODELS.find((each) => each.id === id);
  if (model) return model;
  findModel(OPENAI_ITSELF, id);
  throw refusal(403, 'You are not allowed to generate embeddings from this model');
}
