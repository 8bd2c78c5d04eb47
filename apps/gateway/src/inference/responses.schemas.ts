import { type JsonSchema, nameSchema } from '../openapi/operation.ts';
import { array, BOOLEAN, COUNT, nullable, object, STRING, seconds, text, usd } from '../openapi/schemas.ts';
import { createCostDetailsSchema } from './cost-details.schemas.ts';

const NUMBER: JsonSchema = { type: 'number' };
const NULL: JsonSchema = { type: 'null' };
const ANY_OBJECT: JsonSchema = { type: 'object', additionalProperties: true };
/** Returns the schema of an object with a type and any other fields: items have many types, and more may be added. */
const typedObject = (description: string): JsonSchema => ({
  ...object({ type: text(description) }),
  additionalProperties: true,
});

export const ResponseUsage = nameSchema(
  'ResponseUsage',
  object({
    input_tokens: COUNT,
    input_tokens_details: object({ cached_tokens: COUNT, cache_write_tokens: COUNT }),
    output_tokens: COUNT,
    output_tokens_details: object({ reasoning_tokens: COUNT }),
    total_tokens: COUNT,
    cost: usd('The charged amount'),
    cost_details: createCostDetailsSchema('input', 'output'),
  }),
);

export const ResponseSchema = nameSchema(
  'Response',
  object(
    {
      id: text('The id of the response, which a later request may use as `previous_response_id`', {
        pattern: '^resp_',
      }),
      object: { const: 'response' },
      status: { enum: ['in_progress', 'completed', 'incomplete', 'failed'] },
      created_at: seconds('When the response was created'),
      completed_at: nullable(seconds('When the response was completed')),
      model: STRING,
      error: { ...object({ code: STRING, message: STRING }), type: ['object', 'null'] },
      incomplete_details: { ...object({ reason: STRING }), type: ['object', 'null'] },
      instructions: nullable(STRING),
      metadata: { type: ['object', 'null'], additionalProperties: true },
      parallel_tool_calls: BOOLEAN,
      temperature: nullable(NUMBER),
      top_p: nullable(NUMBER),
      presence_penalty: nullable(NUMBER),
      frequency_penalty: nullable(NUMBER),
      tool_choice: { description: 'A mode, or an object that names a tool' },
      tools: array(typedObject('The type of the tool')),
      max_output_tokens: nullable(COUNT),
      previous_response_id: nullable(STRING),
      reasoning: object({ effort: nullable(STRING), summary: nullable(STRING) }),
      text: object({ format: ANY_OBJECT, verbosity: STRING }, ['verbosity']),
      store: { ...BOOLEAN, description: 'Whether the response is stored' },
      truncation: STRING,
      top_logprobs: COUNT,
      service_tier: { const: 'default' },
      user: STRING,
      safety_identifier: STRING,
      prompt_cache_key: STRING,
      output: array(typedObject('message, reasoning, function_call …')),
      output_text: text('The complete text of the output'),
      usage: {
        anyOf: [ResponseUsage, NULL],
        description: 'Null while the response is in progress, and if charging failed',
      },
    },
    ['service_tier', 'user', 'safety_identifier', 'prompt_cache_key', 'top_logprobs'],
  ),
);

export const ResponseStreamEvent = nameSchema('ResponseStreamEvent', {
  ...typedObject('response.created … and last response.completed, response.incomplete or response.failed'),
  description: 'The data of one SSE event; `type` is also the name of the event. After the last one comes [DONE].',
});

export const ResponseTokens = nameSchema(
  'ResponseTokens',
  object({ object: { const: 'response.input_tokens' }, input_tokens: COUNT }),
);

export const CompactedResponse = nameSchema(
  'CompactedResponse',
  object({
    id: text('The id of the compaction', { pattern: '^resp_' }),
    object: { const: 'response.compaction' },
    created_at: seconds('When the compaction was created'),
    output: array(typedObject('message; the last item is a compaction')),
    usage: ResponseUsage,
  }),
);

export const InputItems = nameSchema(
  'InputItems',
  object({
    object: { const: 'list' },
    data: array(typedObject('message, reasoning, function_call …')),
    first_id: nullable(STRING),
    last_id: nullable(STRING),
    has_more: BOOLEAN,
  }),
);

export const ResponseDeleted = nameSchema(
  'ResponseDeleted',
  object({ id: STRING, object: { const: 'response' }, deleted: { const: true } }),
);
