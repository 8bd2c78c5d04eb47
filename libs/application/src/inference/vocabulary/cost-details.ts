import { money, usdNumber } from '#kernel';
import type { Receipt } from '../../paying/purchase.ts';

/**
 * What the cost in a usage is made of, in USD, as OpenRouter's strict clients read it, with what it is beside the vendor's
 * part. The parts add up to the cost. This is for protocols that call the sides input and output.
 */
export function costDetails({ parts }: Receipt) {
  const { input, output, searches, margin } = parts;
  return {
    upstream_inference_cost: usdNumber(money.add(input, output)),
    upstream_inference_input_cost: usdNumber(input),
    upstream_inference_output_cost: usdNumber(output),
    web_search_cost: usdNumber(searches),
    margin: usdNumber(margin),
  };
}

/** The same for chats. */
export function chatCostDetails({ parts }: Receipt) {
  const { input, output, searches, margin } = parts;
  return {
    upstream_inference_cost: usdNumber(money.add(input, output)),
    upstream_inference_prompt_cost: usdNumber(input),
    upstream_inference_completions_cost: usdNumber(output),
    web_search_cost: usdNumber(searches),
    margin: usdNumber(margin),
  };
}
