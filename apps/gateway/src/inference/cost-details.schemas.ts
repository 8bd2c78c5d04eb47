import { object, usd } from '../openapi/schemas.ts';

/** @param sides the names of input and output in the protocol */
export function createCostDetailsSchema(...sides: readonly [input: string, output: string]) {
  const schema = object({
    upstream_inference_cost: usd('The cost of the model at its provider'),
    [`upstream_inference_${sides[0]}_cost`]: usd('The part of this cost for the input'),
    [`upstream_inference_${sides[1]}_cost`]: usd('The part of this cost for the output'),
    web_search_cost: usd('The fees for web searches'),
    margin: usd('The margin, which is the rest of the cost'),
  });
  return { ...schema, description: 'The parts of the cost: input, output, web searches and margin add up to it' };
}
