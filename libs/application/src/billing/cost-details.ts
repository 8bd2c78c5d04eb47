import { money, toUsdJsonNumber } from '#kernel';
import type { Receipt } from './order.ts';

/**
 * What the cost in a usage is made of, in USD, as OpenRouter's strict clients read it, with what it is beside the vendor's
 * part. The parts add up to the cost.
 * @param protocol which decides what input and output are called
 */
export function toCostDetails({ parts }: Receipt, protocol: 'completions' | 'others') {
  const { input, output, searches, margin } = parts;
  // Not by computed names, which take longer than all the rest.
  const sides =
    protocol === 'completions'
      ? {
          upstream_inference_prompt_cost: toUsdJsonNumber(input),
          upstream_inference_completions_cost: toUsdJsonNumber(output),
        }
      : {
          upstream_inference_input_cost: toUsdJsonNumber(input),
          upstream_inference_output_cost: toUsdJsonNumber(output),
        };
  const upstream_inference_cost = toUsdJsonNumber(money.add(input, output));
  return {
    upstream_inference_cost,
    ...sides,
    web_search_cost: toUsdJsonNumber(searches),
    margin: toUsdJsonNumber(margin),
  };
}
