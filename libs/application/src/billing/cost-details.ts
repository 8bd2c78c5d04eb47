import { money, usdNumber } from '#kernel';
import type { Receipt } from './purchase.ts';

/**
 * What the cost in a usage is made of, in USD, as OpenRouter's strict clients read it, with what it is beside the vendor's
 * part. The parts add up to the cost.
 * @param protocol which decides what input and output are called
 */
export function costDetails({ parts }: Receipt, protocol: 'completions' | 'others') {
  const { input, output, searches, margin } = parts;
  // Not by computed names, which take longer than all the rest.
  const sides =
    protocol === 'completions'
      ? { upstream_inference_prompt_cost: usdNumber(input), upstream_inference_completions_cost: usdNumber(output) }
      : { upstream_inference_input_cost: usdNumber(input), upstream_inference_output_cost: usdNumber(output) };
  const upstream_inference_cost = usdNumber(money.add(input, output));
  return { upstream_inference_cost, ...sides, web_search_cost: usdNumber(searches), margin: usdNumber(margin) };
}
