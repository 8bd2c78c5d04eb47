/** Parses the inputs of embeddings, which are texts or arrays of tokens, and counts their tokens. */
import { InvalidRequestError } from '../../errors.ts';
import { countMaxTextTokens, isTokenBoundary, splitForTokenizerAsync } from '../../tokenizer.ts';

export type EmbeddingInput = string | readonly number[];

const MAX_INPUTS = 2_048;
/** Splitting a text within a token adds at most this many tokens to its count. */
const EXTRA_TOKENS_PER_SPLIT = 2;

/**
 * Parses the `input` of a request into a list of inputs.
 * @throws InvalidRequestError (400) if it is empty, has too many inputs, or is not in one of OpenAI's formats
 */
export function parseEmbeddingInputs(input: unknown): readonly EmbeddingInput[] {
  if (typeof input === 'string') return [assertNonEmpty(input)];
  if (!Array.isArray(input)) throw invalidInput('must be a string, an array of strings, or tokens');
  const list: readonly unknown[] = input;
  if (list.length === 0) throw invalidInput('must not be empty');
  if (isTokens(list)) return [list];
  if (list.length > MAX_INPUTS) throw invalidInput(`must have at most ${MAX_INPUTS} inputs`);
  if (list.every((item) => typeof item === 'string')) return list.map(assertNonEmpty);
  if (list.every(isTokens)) return list;
  throw invalidInput('must have strings only, non-negative integers only, or non-empty arrays of such numbers only');
}

/** Returns an upper bound of the tokens of one input. It is exact for an array of tokens. */
export function countMaxInputTokens(input: EmbeddingInput): number {
  return typeof input === 'string' ? Math.ceil(countMaxTextTokens(input)) : input.length;
}

/**
 * Rejects ids of tokens that the model does not have: a provider fails on them, or embeds something else.
 * @param vocabulary number of token ids; infinity if it is unknown
 * @throws InvalidRequestError (400) naming the first such id
 */
export function assertKnownTokens(inputs: readonly EmbeddingInput[], vocabulary: number): void {
  for (const input of inputs) {
    const unknown = typeof input === 'string' ? undefined : input.find((token) => token >= vocabulary);
    if (unknown !== undefined) throw invalidInput(`must have token ids below ${vocabulary} for this model: ${unknown}`);
  }
}

/**
 * Rejects inputs with more tokens than the model accepts. Tokens are counted only for a text with more bytes than the
 * limit, because a token has at least one byte. A text that must be split within a token is accepted in case of doubt;
 * the provider then decides.
 * @throws InvalidRequestError (400) naming the limit
 */
export async function assertInputsFit(inputs: readonly EmbeddingInput[], limit: number): Promise<void> {
  for (const [i, input] of inputs.entries()) {
    if ((typeof input === 'string' ? Buffer.byteLength(input) : input.length) <= limit) continue;
    if (typeof input === 'string' && (await countCl100kTokens(input, limit)) <= limit) continue;
    const which = inputs.length === 1 ? 'the input' : `input ${i}`;
    const limitText = limit.toLocaleString('en-US');
    const message = `input must have at most ${limitText} tokens for this model, but ${which} has more`;
    throw new InvalidRequestError(400, message, 'input', { tooLong: true });
  }
}

/** Counts the tokens of all inputs, for usage that the provider did not report. */
export async function countEmbeddingTokens(inputs: readonly EmbeddingInput[]): Promise<number> {
  let total = 0;
  for (const input of inputs) total += typeof input === 'string' ? await countCl100kTokens(input) : input.length;
  return total;
}

/** Counts tokens until the limit is certainly exceeded. With a limit, tokens that splitting may add are subtracted. */
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
  if (input === '') throw invalidInput('must not be or contain an empty string');
  return input;
}

function invalidInput(requirement: string): InvalidRequestError {
  return new InvalidRequestError(400, `input ${requirement}`, 'input');
}
