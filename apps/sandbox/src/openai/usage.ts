import { formatUsd } from '#kernel';
import { calculateCost } from '../bill.ts';
import { countBilledTokens } from '../provider/charge.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { OpenAiProvider } from './models.ts';

/**
 * Returns the usage as OpenAI reports it: prompt tokens include cached tokens, completion tokens include reasoning.
 * @param costField the field with the cost of the request, if the provider reports it
 */
export function toUsage(output: SandboxModelOutput, fault: Fault | undefined, costField?: OpenAiProvider['costField']) {
  const { n, input, cached, reasoning, visible } = output;
  const tokens =
    fault === 'zero' ? toUsageJson(0, 0, 0, 0) : toUsageJson(input, n * (reasoning + visible), cached, n * reasoning);
  return { ...tokens, ...toCostFields(output, fault, costField) };
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

function toCostFields(
  output: SandboxModelOutput,
  fault: Fault | undefined,
  costField: OpenAiProvider['costField'],
): Readonly<Record<string, unknown>> {
  if (costField === undefined) return {};
  const { model, n, visible, reportedBill } = output;
  const cost = calculateCost(model.price, countBilledTokens(output, n * visible, fault));
  return toCostReport(costField, reportedBill.cost ?? formatUsd(cost));
}

/** The costs at the router's own provider, which are reported to customers who bring their keys. */
const ROUTER_COST_DETAILS = {
  upstream_inference_cost: null,
  upstream_inference_prompt_cost: 0,
  upstream_inference_completions_cost: 0,
};

/** Returns the cost as the provider reports it: https://openrouter.ai/docs/use-cases/usage-accounting */
export function toCostReport(
  costField: NonNullable<OpenAiProvider['costField']>,
  usd: string,
): Readonly<Record<string, unknown>> {
  const isRouter = costField === 'cost';
  return {
    [costField]: Number(usd),
    ...(isRouter ? { cost_details: ROUTER_COST_DETAILS, is_byok: false } : {}),
  };
}
