/** An embeddings request as OpenAI would understand it, or refuse it. */

import { countTokens } from '../../provider/tokens.ts';
import { parseObject } from '../../router.ts';
import { refusal, refusalOf } from '../errors.ts';
import type { OpenAiProvider } from '../models.ts';
import { type EmbeddingModel, findEmbeddingModel } from './embedding-models.ts';

export type SandboxEmbeddingInput = string | readonly number[];

export interface SandboxEmbeddingRequest {
  readonly model: EmbeddingModel;
  readonly inputs: readonly SandboxEmbeddingInput[];
  readonly dimensions: number;
  readonly base64: boolean;
  readonly tokens: number;
  /** All texts, which may carry a directive. */
  readonly text: string;
}

const PARAMETERS: ReadonlySet<string> = new Set(['model', 'input', 'encoding_format', 'dimensions', 'user']);
const MOST_INPUTS = 2_048;
const MOST_TOKENS = 300_000;

/** @throws Refusal in OpenAI's shape */
export function readEmbeddingRequest(json: string, provider: OpenAiProvider): SandboxEmbeddingRequest {
  const body = parseObject(json);
  if (!body) throw refusal(400, 'We could not parse the JSON body of your request. The API expects a JSON object.');
  if (typeof body.model !== 'string' || body.model === '') throw refusal(400, 'you must provide a model parameter');
  const unknown = Object.keys(body).find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined) throw refusal(400, `Unrecognized request argument supplied: ${unknown}`);
  const model = findEmbeddingModel(provider, body.model);
  const inputs = inputsIn(body.input);
  const counts = inputs.map((input) => (typeof input === 'string' ? countTokens(input) : input.length));
  const longest = Math.max(...counts);
  if (longest > model.context) {
    const most = `This model's maximum context length is ${model.context} tokens`;
    throw refusal(400, `${most}, however you requested ${longest} tokens. Please reduce your prompt.`);
  }
  const tokens = counts.reduce((sum, each) => sum + each, 0);
  if (tokens > MOST_TOKENS) {
    const message = `Requested ${tokens} tokens, max ${MOST_TOKENS} tokens per request`;
    throw refusalOf('max_tokens_per_request', 400, message, { code: 'max_tokens_per_request' });
  }
  return {
    model,
    inputs,
    dimensions: dimensionsIn(body.dimensions, model),
    base64: isBase64(body.encoding_format),
    tokens,
    text: inputs.filter((input) => typeof input === 'string').join('\n'),
  };
}

function inputsIn(input: unknown): readonly SandboxEmbeddingInput[] {
  const isTokens = (value: unknown): value is number[] =>
    Array.isArray(value) && value.length > 0 && value.every((each) => Number.isInteger(each) && each >= 0);
  const list: unknown = typeof input === 'string' || isTokens(input) ? [input] : input;
  const isInput = (each: unknown): each is SandboxEmbeddingInput =>
    (typeof each === 'string' && each !== '') || isTokens(each);
  if (Array.isArray(list) && list.length > 0 && list.length <= MOST_INPUTS && list.every(isInput)) return list;
  throw refusal(400, "'$.input' is invalid. Please check the API reference.", 'input');
}

function dimensionsIn(dimensions: unknown, model: EmbeddingModel): number {
  if (dimensions === undefined || dimensions === null) return model.dimensions;
  if (!model.shortens) throw refusal(400, 'This model does not support specifying dimensions.', 'dimensions');
  if (Number.isInteger(dimensions) && Number(dimensions) >= 1 && Number(dimensions) <= model.dimensions)
    return Number(dimensions);
  throw refusal(400, `Invalid value for 'dimensions' = ${dimensions}. Must be from 1 to ${model.dimensions}.`);
}

function isBase64(format: unknown): boolean {
  if (format === undefined || format === null || format === 'float') return false;
  if (format === 'base64') return true;
  throw refusal(400, `'${format}' is not one of ['float', 'base64'] - 'encoding_format'`, 'encoding_format');
}
