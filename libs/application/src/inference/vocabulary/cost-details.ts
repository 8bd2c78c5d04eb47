import { money, usdNumber } from '#kernel';
import type { Receipt } from '../../paying/purchase.ts';

const NAMES = {
  completions: ['upstream_inference_prompt_cost', 'upstream_inference_completions_cost'],
  others: ['upstream_inference_input_cost', 'upstream_inference_output_cost'],
} as const;

/**
 * What the cost in a usage is made of, in USD, as OpenRouter's strict clients read it, with what it is beside the vendor's
 * part. The parts add up to the cost.
 * @param protocol which decides what input and output are called
 */
export function costDetails({ parts }: Receipt, protocol: 'completions' | 'others') {
  const { input, output, searches, margin } = parts;
  const [nameOfInput, nameOfOutput] = NAMES[protocol];
  return {
    upstream_inference_cost: usdNumber(money.add(input, output)),
    [nameOfInput]: usdNumber(input),
    [nameOfOutput]: usdNumber(output),
    web_search_cost: usdNumber(searches),
    margin: usdNumber(margin),
  };
}
