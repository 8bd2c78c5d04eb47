import { named, type Schema } from '../openapi/operation.ts';
import { array, BOOLEAN, COUNT, nullable, object, STRING, seconds, text, usd } from '../openapi/schemas.ts';

const NOTHING: Schema = { type: 'null' };
const decimal = (description: string) =>
  text(`${description}, in USD as a decimal string`, { pattern: '^\\d+(\\.\\d+)?$' });
const BOTH = object({ input_per_1M: usd('1,000,000 input tokens'), output_per_1M: usd('1,000,000 output tokens') });

export const Model = named(
  'Model',
  object({
    id: text('What a request calls it by'),
    object: { const: 'model' },
    created: seconds('When it was released'),
    created_at: { type: 'integer', description: 'The same in milliseconds' },
    owned_by: STRING,
    provider: STRING,
    name: STRING,
    type: text('What it is for, such as chat'),
    description: STRING,
    canonical_slug: STRING,
    context_length: { ...COUNT, description: 'Tokens of input and output together at most' },
    popular: BOOLEAN,
    privacyLevel: STRING,
    architecture: object({
      modality: STRING,
      input_modalities: array(STRING),
      output_modalities: array(STRING),
      tokenizer: STRING,
      instruct_type: NOTHING,
    }),
    pricing: object({
      input_per_1M_tokens: usd('1,000,000 input tokens'),
      output_per_1M_tokens: usd('1,000,000 output tokens'),
      cache_read_per_1M_tokens: usd('1,000,000 input tokens that were read from a cache'),
      api: BOTH,
      ui: BOTH,
      prompt: decimal('One input token'),
      completion: decimal('One output token'),
      input_cache_read: decimal('One input token that was read from a cache'),
      request: decimal('One request, whatever its tokens'),
    }),
    median_cost: {
      ...nullable(object({ api: object({ usd: usd('One query, in the middle') }), sample_size: COUNT })),
      description: 'What queries cost lately; null where nobody has asked yet',
    },
    prompts_per_usd: nullable({ ...COUNT, description: 'How many such queries 1 USD pays' }),
    supported_parameters: array(STRING),
    top_provider: object({ context_length: COUNT, max_completion_tokens: nullable(COUNT), is_moderated: BOOLEAN }),
    per_request_limits: NOTHING,
    default_parameters: NOTHING,
    supported_voices: NOTHING,
    links: object({ details: STRING }),
  }),
);

export const ModelList = named(
  'ModelList',
  object({
    object: { const: 'list' },
    data: array(Model),
    total_count: COUNT,
    links: object({ next: NOTHING }),
  }),
);
