import type { SandboxModelOutput } from '../provider/model-output.ts';
import { tokenStarts } from '../provider/tokens.ts';

/** Each token is taken as all but sure; its alternatives are made up. */
export function logprobsOf(text: string, top: number | undefined): readonly object[] {
  if (top === undefined) return [];
  const starts = tokenStarts(text);
  return starts.map((from, at) => {
    const token = text.slice(at === 0 ? 0 : from, starts[at + 1]);
    const entry = (each: string, logprob: number) => ({ token: each, bytes: [...Buffer.from(each)], logprob });
    const others = Array.from({ length: top }, (_, rank) =>
      entry(rank === 0 ? token : `?${rank}`, -0.5 * (rank + 0.25)),
    );
    return { ...entry(token, -0.125), top_logprobs: others };
  });
}

/** As a choice of a chat has them: of words only. */
export function chatLogprobs({ tool }: SandboxModelOutput, text: string, top: number | undefined) {
  return top === undefined || tool !== undefined ? null : { content: logprobsOf(text, top), refusal: null };
}
