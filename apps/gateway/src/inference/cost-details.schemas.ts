import { object, usd } from '../openapi/schemas.ts';

/** @param sides what the protocol calls input and output */
export function createCostDetailsSchema(...sides: readonly [input: string, output: string]) {
  const schema = object({
    upstream_inference_cost: usd('What the vendor of the model takes'),
    [`upstream_inference_${sides[0]}_cost`]: usd('The part of that for the input'),
    [`upstream_inference_${sides[1]}_cost`]: usd('The part of that for the output'),
    web_search_cost: usd('Fees for searches of the web'),
    margin: usd('The rest'),
  });
  return { ...schema, description: 'What the cost is made of: input, output, searches and margin add up to it' };
}
