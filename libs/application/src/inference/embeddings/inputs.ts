/** Parses the inputs of embeddings, which are texts or arrays of tokens, and counts their tokens. */
import { InvalidRequestError } from '../../errors.ts';
import type { TokenCounter, TokenCountOptions } from '../../tokens/token-counter.ts';
import { countMaxTextTokens } from '../../tokens/tokenizer.ts';

export type EmbeddingInput = string | readonly number[];

const MAX_INPUTS = 2_048;
const ENCODING = 'cl100k_base';

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
 * @param countEach counts texts like `TokenCounter.countEach`, until the limit is exceeded. It is called only if tokens
 *   must be counted
 * @throws InvalidRequestError (400) naming the limit; errors of `countEach`
 */
export async function assertInputsFit(
  inputs: readonly EmbeddingInput[],
  limit: number,
  countEach: (texts: readonly string[], options: TokenCountOptions) => Promise<readonly number[]>,
): Promise<void> {
  const long = [...inputs.entries()].filter(([, input]) => isLonger(input, limit));
  if (long.length === 0) return;
  const tokens = long.find(([, input]) => typeof input !== 'string');
  if (tokens) throw createTooLongError(tokens[0], inputs.length, limit);
  const texts = long.map(([, text]) => text as string);
  const counts = await countEach(texts, { encoding: ENCODING, limit });
  if ((counts.at(-1) ?? 0) > limit) throw createTooLongError(long[counts.length - 1]?.[0] ?? 0, inputs.length, limit);
}

/** A text has at least as many bytes as characters, so the bytes of a very long one need not be counted. */
function isLonger(input: EmbeddingInput, limit: number): boolean {
  return input.length > limit || (typeof input === 'string' && Buffer.byteLength(input) > limit);
}

function createTooLongError(index: number, inputs: number, limit: number): InvalidRequestError {
  const which = inputs === 1 ? 'the input' : `input ${index}`;
  const limitText = limit.toLocaleString('en-US');
  const message = `input must have at most ${limitText} tokens for this model, but ${which} has more`;
  return new InvalidRequestError(400, message, 'input', { tooLong: true });
}

/** Counts the tokens of all inputs, for usage that the provider did not report. */
export async function countEmbeddingTokens(
  inputs: readonly EmbeddingInput[],
  counter: TokenCounter,
  owner: string,
): Promise<number> {
  const texts = inputs.filter((input) => typeof input === 'string');
  const counts = await counter.countEach(owner, texts, { encoding: ENCODING, isRequired: true });
  const textTokens = counts.reduce((sum, count) => sum + count, 0);
  return inputs.reduce((sum, input) => sum + (typeof input === 'string' ? 0 : input.length), textTokens);
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
