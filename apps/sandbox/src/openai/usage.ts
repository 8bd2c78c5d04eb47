import { formatUsd, money } from '#kernel';
import { calculateCost } from '../bill.ts';
import { calculateSearchCost, countBilledSearches, countBilledTokens } from '../provider/charge.ts';
import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { ResponseFields } from './response-fields.ts';
import { ROUTER } from './router-search.ts';

const NO_AUDIO = { audio_tokens: 0 };
const NO_PREDICTION = { accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 };

/** Returns the usage: prompt tokens include cached tokens, completion tokens include reasoning. */
export function toUsage(output: SandboxModelOutput, fault: Fault | undefined, { lacks, cost }: ResponseFields) {
  const isZero = fault === 'zero';
  const prompt = isZero ? 0 : output.input;
  const reasoning = isZero ? 0 : output.n * output.reasoning;
  const completion = isZero ? 0 : reasoning + output.n * output.visible;
  const [audio, prediction] = lacks.has('audio and prediction tokens') ? [] : [NO_AUDIO, NO_PREDICTION];
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: isZero ? 0 : output.cached, ...audio },
    completion_tokens_details: { reasoning_tokens: reasoning, ...audio, ...prediction },
    ...toCostFields(output, fault, cost),
  };
}

function toCostFields(
  output: SandboxModelOutput,
  fault: Fault | undefined,
  costField: ResponseFields['cost'],
): Readonly<Record<string, unknown>> {
  if (costField === undefined) return {};
  const { model, n, visible, searches, reportedBill } = output;
  const cost = calculateCost(model.price, countBilledTokens(output, n * visible, fault));
  if (searches.length === 0) return toCostReport(costField, reportedBill.cost ?? formatUsd(cost));
  // Only the router searches in chats. Its cost includes the searches.
  const web_search_requests = countBilledSearches(ROUTER, output, fault);
  const total = money.add(cost, calculateSearchCost(ROUTER, web_search_requests));
  return {
    ...toCostReport(costField, reportedBill.cost ?? formatUsd(total)),
    server_tool_use_details: { web_search_requests },
  };
}

/** The costs at the router's own provider, which are reported to customers who bring their keys. */
const ROUTER_COST_DETAILS = {
  upstream_inference_cost: null,
  upstream_inference_prompt_cost: 0,
  upstream_inference_completions_cost: 0,
};

/** Returns the cost as the provider reports it: https://openrouter.ai/docs/use-cases/usage-accounting */
export function toCostReport(
  costField: NonNullable<ResponseFields['cost']>,
  usd: string,
): Readonly<Record<string, unknown>> {
  const isRouter = costField === 'cost';
  return {
    [costField]: Number(usd),
    ...(isRouter ? { cost_details: ROUTER_COST_DETAILS, is_byok: false } : {}),
  };
}
