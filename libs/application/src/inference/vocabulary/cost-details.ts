import { money, usdNumber } from '#kernel';
import type { Receipt } from '../../paying/purchase.ts';

/**
 * What the cost in a usage is made of, in USD, as OpenRouter's strict clients read it, with what it is beside the vendor's
 * part. The parts add up to the cost.
 * @param sides what this protocol calls input and output
 */
export function costDetails({ parts }: Receipt, sides: readonly [input: string, output: string]) {
  const { input, output, searches, margin } = parts;
  return {
    upstream_inference_cost: usdNumber(money.add(input, output)),
    [`upstream_inference_${sides[0]}_cost`]: usdNumber(input),
    [`upstream_inference_${sides[1]}_cost`]: usdNumber(output),
    web_search_cost: usdNumber(searches),
    margin: usdNumber(margin),
  };
}
