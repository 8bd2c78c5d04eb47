import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';

/** Returns the usage as OpenAI reports it: prompt tokens include cached tokens, completion tokens include reasoning. */
export function toUsage({ n, input, cached, reasoning, visible }: SandboxModelOutput, fault: Fault | undefined) {
  return fault === 'zero'
    ? toUsageJson(0, 0, 0, 0)
    : toUsageJson(input, n * (reasoning + visible), cached, n * reasoning);
}

function toUsageJson(prompt: number, completion: number, cached: number, reasoning: number) {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
