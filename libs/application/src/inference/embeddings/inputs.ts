/** What is to be embedded: texts, or tokens that the caller has made of them; how many tokens they are, at most and exactly. */
import { InvalidRequestError } from '../../errors.ts';
import { countMaxTextTokens, isTokenBoundary, splitForTokenizerAsync } from '../../tokenizer.ts';

export type EmbeddingInput = string | readonly number[];

const MAX_INPUTS = 2_048;
/** A part that ends within a token counts it as this many more. */
const EXTRA_TOKENS_PER_SPLIT = 2;

/**
 * Reads the `input` of a request, which may be one input or many.
 * @throws InvalidRequestError 400 when it is something else, or empty
 */
export function parseEmbeddingInputs(input: unknown): readonly EmbeddingInput[] {
  if (typeof input === 'string') return [assertNonEmpty(input)];
  if (!Array.isArray(input)) throw invalidInput('must be a string, an array of strings, or tokens');
  const list: readonly unknown[] = input;
  if (list.length === 0) throw invalidInput('must not be empty');
  if (isTokens(list)) return [list];
  if (list.length > MAX_INPUTS) throw invalidInput(`must be at most ${MAX_INPUTS} inputs`);
  if (list.every((item) => typeof item === 'string')) return list.map(assertNonEmpty);
  if (list.every(isTokens)) return list;
  throw invalidInput('must be strings only, or whole numbers from 0 only, or non-empty arrays of these numbers only');
}

/** An upper bound, in practice, of the tokens of one input; exact where it is tokens. */
export function countMaxInputTokens(input: EmbeddingInput): number {
  return typeof input === 'string' ? Math.ceil(countMaxTextTokens(input)) : input.length;
}

/**
 * Refuses what a model cannot take. Only a text is counted that might have more tokens, with one for each byte; what has
 * longer words than are counted at once passes in doubt, and the upstream decides.
 * @throws InvalidRequestError 400 that names the limit
 */
export async function assertInputsFit(inputs: readonly EmbeddingInput[], limit: number): Promise<void> {
  for (const [i, input] of inputs.entries()) {
    if ((typeof input === 'string' ? Buffer.byteLength(input) : input.length) <= limit) continue;
    if (typeof input === 'string' && (await countCl100kTokens(input, limit)) <= limit) continue;
    const which = inputs.length === 1 ? 'the input' : `input ${i}`;
    const limitText = limit.toLocaleString('en-US');
    const message = `input may have at most ${limitText} tokens for this model, and ${which} has more`;
    throw new InvalidRequestError(400, message, 'input', { tooLong: true });
  }
}

/** Counts what an upstream did not report. */
export async function countEmbeddingTokens(inputs: readonly EmbeddingInput[]): Promise<number> {
  let total = 0;
  for (const input of inputs) total += typeof input === 'string' ? await countCl100kTokens(input) : input.length;
  return total;
}

/** Counts until a limit is certainly exceeded; what cutting adds is subtracted where it matters. */
async function countCl100kTokens(text: string, limit = Number.POSITIVE_INFINITY): Promise<number> {
  const { countTokens: count } = await import('gpt-tokenizer/encoding/cl100k_base');
  const allowance = limit === Number.POSITIVE_INFINITY ? 0 : EXTRA_TOKENS_PER_SPLIT;
  let tokens = 0;
  let end = 0;
  for await (const part of splitForTokenizerAsync(text)) {
    end += part.length;
    const isTokenSplit = end < text.length && !isTokenBoundary(text, end);
    tokens += count(part, { allowedSpecial: 'all' }) - (isTokenSplit ? allowance : 0);
    if (tokens > limit) break;
  }
  return Math.max(tokens, 0);
}

function isTokens(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every((token) => Number.isSafeInteger(token) && token >= 0);
}

function assertNonEmpty(input: string): string {
  if (input === '') throw invalidInput('must not be, or contain, an empty string');
  return input;
}

function invalidInput(requirement: string): InvalidRequestError {
  return new InvalidRequestError(400, `input ${requirement}`, 'input');
}
