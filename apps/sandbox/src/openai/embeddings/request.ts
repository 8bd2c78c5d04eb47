/** Parses and validates an embeddings request as OpenAI does. */

import { type ApplyRule, readWithRules } from '../../provider/leniency.ts';
import { countTokens } from '../../provider/tokens.ts';
import { parseObject } from '../../router.ts';
import { createError, invalidRequestError } from '../errors.ts';
import type { OpenAiProvider } from '../models.ts';
import { assertProviderEmbeds } from '../provider-rules.ts';
import { type EmbeddingModel, findEmbeddingModel } from './embedding-models.ts';

export type SandboxEmbeddingInput = string | readonly number[];

export interface SandboxEmbeddingRequest {
  readonly model: EmbeddingModel;
  readonly inputs: readonly SandboxEmbeddingInput[];
  readonly dimensions: number;
  readonly base64: boolean;
  readonly tokens: number;
  /** All texts, which may contain a directive. */
  readonly text: string;
}

const PARAMETERS: ReadonlySet<string> = new Set(['model', 'input', 'encoding_format', 'dimensions', 'user']);
const MAX_INPUTS = 2_048;
const MAX_TOKENS = 300_000;

/** @throws HttpError in OpenAI's error format */
export function readEmbeddingRequest(json: string, provider: OpenAiProvider): SandboxEmbeddingRequest {
  return readWithRules(json, (applyRule) => parseEmbeddingRequest(json, provider, applyRule));
}

function parseEmbeddingRequest(json: string, provider: OpenAiProvider, applyRule: ApplyRule): SandboxEmbeddingRequest {
  const body = parseObject(json);
  if (!body)
    throw invalidRequestError(400, 'We could not parse the JSON body of your request. The API expects a JSON object.');
  if (typeof body.model !== 'string' || body.model === '')
    throw invalidRequestError(400, 'you must provide a model parameter');
  applyRule(() => assertNoUnknownParameter(body));
  applyRule(() => assertProviderEmbeds(body, provider));
  const model = findEmbeddingModel(provider, body.model);
  const inputs = parseInputs(body.input);
  const counts = inputs.map((input) => (typeof input === 'string' ? countTokens(input) : input.length));
  const maxInputTokens = Math.max(...counts);
  if (maxInputTokens > model.context) {
    const limitMessage = `This model's maximum context length is ${model.context} tokens`;
    throw invalidRequestError(
      400,
      `${limitMessage}, however you requested ${maxInputTokens} tokens. Please reduce your prompt.`,
    );
  }
  const tokens = counts.reduce((sum, count) => sum + count, 0);
  if (tokens > MAX_TOKENS) {
    const message = `Requested ${tokens} tokens, max ${MAX_TOKENS} tokens per request`;
    throw createError('max_tokens_per_request', 400, message, { code: 'max_tokens_per_request' });
  }
  return {
    model,
    inputs,
    dimensions: parseDimensions(body.dimensions, model),
    base64: isBase64(body.encoding_format),
    tokens,
    text: inputs.filter((input) => typeof input === 'string').join('\n'),
  };
}

function assertNoUnknownParameter(body: object): void {
  const unknown = Object.keys(body).find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined) throw invalidRequestError(400, `Unrecognized request argument supplied: ${unknown}`);
}

function parseInputs(input: unknown): readonly SandboxEmbeddingInput[] {
  const isTokens = (value: unknown): value is number[] =>
    Array.isArray(value) && value.length > 0 && value.every((token) => Number.isInteger(token) && token >= 0);
  const list: unknown = typeof input === 'string' || isTokens(input) ? [input] : input;
  const isInput = (value: unknown): value is SandboxEmbeddingInput =>
    (typeof value === 'string' && value !== '') || isTokens(value);
  if (Array.isArray(list) && list.length > 0 && list.length <= MAX_INPUTS && list.every(isInput)) return list;
  throw invalidRequestError(400, "'$.input' is invalid. Please check the API reference.", 'input');
}

function parseDimensions(dimensions: unknown, model: EmbeddingModel): number {
  if (dimensions === undefined || dimensions === null) return model.dimensions;
  if (!model.supportsDimensions)
    throw invalidRequestError(400, 'This model does not support specifying dimensions.', 'dimensions');
  if (Number.isInteger(dimensions) && Number(dimensions) >= 1 && Number(dimensions) <= model.dimensions)
    return Number(dimensions);
  throw invalidRequestError(
    400,
    `Invalid value for 'dimensions' = ${dimensions}. Must be from 1 to ${model.dimensions}.`,
  );
}

function isBase64(format: unknown): boolean {
  if (format === undefined || format === null || format === 'float') return false;
  if (format === 'base64') return true;
  throw invalidRequestError(
    400,
    `'${format}' is not one of ['float', 'base64'] - 'encoding_format'`,
    'encoding_format',
  );
}
