import { money, toUsdJsonNumber } from '#kernel';
import type { Receipt } from './order.ts';

/**
 * Returns the parts of the `cost` of a usage object, in USD. `upstream_inference_cost`, `web_search_cost` and `margin`
 * add up to the cost. The names of the provider's parts are those that OpenRouter's strict clients require. The gateway
 * adds `web_search_cost` and `margin`.
 * @param protocol decides how input and output are named
 */
export function toCostDetails({ parts }: Receipt, protocol: 'completions' | 'others') {
  const { input, output, searches, margin } = parts;
  // Computed property names would be slower than the rest of this function.
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
