import type { SandboxModelOutput } from '../provider/model-output.ts';
import { findTokenStarts } from '../provider/tokens.ts';

interface Logprob {
  readonly token: string;
  readonly bytes: readonly number[];
  readonly logprob: number;
}

export interface TokenLogprob extends Logprob {
  readonly top_logprobs: readonly Logprob[];
}

/**
 * Returns a high probability for each token, and `top` alternatives: the token itself, then generated ones.
 * @returns an empty list if `top` is undefined
 */
export function toLogprobs(text: string, top: number | undefined): readonly TokenLogprob[] {
  if (top === undefined) return [];
  const starts = findTokenStarts(text);
  return starts.map((from, at) => {
    const token = text.slice(at === 0 ? 0 : from, starts[at + 1]);
    const createEntry = (value: string, logprob: number) => ({ token: value, bytes: [...Buffer.from(value)], logprob });
    const alternatives = Array.from({ length: top }, (_, rank) =>
      createEntry(rank === 0 ? token : `?${rank}`, -0.5 * (rank + 0.25)),
    );
    return { ...createEntry(token, -0.125), top_logprobs: alternatives };
  });
}

/** Returns log probabilities as in events of Responses, where they have no bytes. */
export function toEventLogprobs(logprobs: readonly TokenLogprob[]) {
  return logprobs.map(({ bytes: _, top_logprobs, ...rest }) => {
    return { ...rest, top_logprobs: top_logprobs.map(({ token, logprob }) => ({ token, logprob })) };
  });
}

/** Returns the log probabilities of a chat choice; null for a tool call, or if none were requested. */
export function toChatLogprobs({ tool }: SandboxModelOutput, text: string, top: number | undefined) {
  return top === undefined || tool !== undefined ? null : { content: toLogprobs(text, top), refusal: null };
}
