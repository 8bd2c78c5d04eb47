import { type JsonSchema, nameSchema } from '../openapi/operation.ts';
import {
  array,
  BOOLEAN,
  COUNT,
  nullable,
  object,
  RETIREMENT_FIELDS,
  STRING,
  seconds,
  text,
  usd,
} from '../openapi/schemas.ts';

const NOTHING: JsonSchema = { type: 'null' };
const decimal = (description: string) =>
  text(`${description}, in USD as a decimal string`, { pattern: '^\\d+(\\.\\d+)?$' });
const BASE = usd('Price of one unit if no variant applies');
const BOTH = object(
  {
    input_per_1M: usd('Price of 1,000,000 input tokens'),
    output_per_1M: usd('Price of 1,000,000 output tokens'),
    base_price: BASE,
  },
  ['input_per_1M', 'output_per_1M', 'base_price'],
);

const PRICING = object(
  {
    input_per_1M_tokens: usd('Price of 1,000,000 input tokens'),
    output_per_1M_tokens: usd('Price of 1,000,000 output tokens'),
    cache_read_per_1M_tokens: usd('Price of 1,000,000 input tokens read from a cache'),
    unit: text('The unit of the prices, if the model is not priced by tokens', {
      enum: ['image', 'second', 'clip', 'minute', '1k_characters'],
    }),
    base_price: BASE,
    variants: {
      ...array({ ...object({ price: usd('Price of one unit') }), additionalProperties: STRING }),
      description: 'Prices that depend on parameters; the first variant whose parameters all match applies',
    },
    api: BOTH,
    ui: BOTH,
    prompt: decimal('One input token'),
    completion: decimal('One output token'),
    input_cache_read: decimal('One input token that was read from a cache'),
    input_cache_write: decimal('One input token that was written to a cache'),
    input_cache_write_1h: decimal('One input token that was written to a cache for an hour'),
    internal_reasoning: decimal('One output token of reasoning'),
    request: decimal('One request, regardless of its tokens'),
    image: decimal('One image, if no variant applies'),
    overrides: {
      ...array(
        object(
          {
            min_prompt_tokens: {
              ...COUNT,
              description: 'The prices apply to all tokens of a call whose input has more tokens than this',
            },
            prompt: decimal('One input token'),
            completion: decimal('One output token'),
            input_cache_read: decimal('One input token that was read from a cache'),
            input_cache_write: decimal('One input token that was written to a cache'),
            input_cache_write_1h: decimal('One input token that was written to a cache for an hour'),
          },
          ['input_cache_write_1h'],
        ),
      ),
      description: 'Prices of long inputs; the last entry that applies is used',
    },
  },
  [
    'overrides',
    'input_per_1M_tokens',
    'output_per_1M_tokens',
    'cache_read_per_1M_tokens',
    'unit',
    'base_price',
    'variants',
    'input_cache_read',
    'input_cache_write',
    'input_cache_write_1h',
    'internal_reasoning',
    'image',
  ],
);

const ARCHITECTURE = object({
  modality: STRING,
  input_modalities: array(STRING),
  output_modalities: array(STRING),
  tokenizer: STRING,
  instruct_type: NOTHING,
});

export const ModelSchema = nameSchema(
  'Model',
  object(
    {
      id: text('The id that requests use'),
      object: { const: 'model' },
      created: seconds('When the model was released'),
      created_at: { type: 'integer', description: 'The same instant in milliseconds' },
      owned_by: STRING,
      provider: STRING,
      name: STRING,
      type: text('The modality, such as chat'),
      description: STRING,
      canonical_slug: STRING,
      context_length: {
        ...COUNT,
        description: 'Maximum tokens of input and output together; 0 for a model that is not priced by tokens',
      },
      popular: BOOLEAN,
      privacyLevel: text(
        'anon: providers may retain requests; zdr: the model has an endpoint that retains nothing; e2e: a private model, used only through the local encrypting proxy',
        { enum: ['anon', 'zdr', 'e2e'] },
      ),
      architecture: ARCHITECTURE,
      pricing: {
        ...PRICING,
        description: 'Token prices: the highest of the endpoints that serve by default. Others: those of the cheapest',
      },
      capabilities: {
        ...object({}),
        description: 'Capabilities of a model that is not priced by tokens, and the values of its options',
        additionalProperties: true,
      },
      median_cost: {
        ...nullable(object({ api: object({ usd: usd('Median price of one query') }), sample_size: COUNT })),
        description: 'Median price of recent charged queries; null if unknown',
      },
      prompts_per_usd: nullable({ ...COUNT, description: 'How many such queries 1 USD pays for' }),
      supported_parameters: array(STRING),
      top_provider: object({
        context_length: nullable(COUNT),
        max_completion_tokens: nullable(COUNT),
        is_moderated: BOOLEAN,
      }),
      per_request_limits: NOTHING,
      default_parameters: NOTHING,
      supported_voices: nullable({ ...array(STRING), description: 'The ids of the voices of a speech model' }),
      ...RETIREMENT_FIELDS,
      links: object({ details: STRING }),
    },
    ['capabilities'],
  ),
);

export const ModelList = nameSchema(
  'ModelList',
  object({
    object: { const: 'list' },
    data: array(ModelSchema),
    total_count: COUNT,
    links: object({ next: NOTHING }),
  }),
);

const UNKNOWN = { ...NOTHING, description: 'Not published' };

const EndpointSchema = nameSchema(
  'Endpoint',
  object({
    name: STRING,
    model_id: STRING,
    model_name: STRING,
    provider_name: STRING,
    tag: text('The name of the endpoint in `order`, `only` and `ignore` of `provider`'),
    pricing: PRICING,
    privacy: object({
      zdr: { ...BOOLEAN, description: 'Whether the provider retains nothing of a request' },
      collects_data: { ...BOOLEAN, description: 'Whether the provider may use requests for training' },
    }),
    context_length: COUNT,
    max_completion_tokens: nullable(COUNT),
    max_prompt_tokens: NOTHING,
    quantization: STRING,
    supported_parameters: array(STRING),
    supports_tool_choice: object({ auto: BOOLEAN, function: BOOLEAN, none: BOOLEAN, required: BOOLEAN }),
    supports_implicit_caching: BOOLEAN,
    supports_voice_cloning: BOOLEAN,
    supports_diarization: BOOLEAN,
    service_tier: { ...NOTHING, description: 'The standard tier' },
    expected: object({
      latency_ms: nullable({ type: 'number', description: 'Milliseconds to the first token' }),
      tokens_per_second: nullable({ type: 'number' }),
    }),
    expiration_date: RETIREMENT_FIELDS.expiration_date,
    default: { ...BOOLEAN, description: 'Whether the endpoint serves requests without provider preferences' },
    native_tools: { ...object({}), description: 'Not published' },
    status: { const: 0 },
    uptime_last_5m: UNKNOWN,
    uptime_last_30m: UNKNOWN,
    uptime_last_1d: UNKNOWN,
    latency_last_30m: UNKNOWN,
    throughput_last_30m: UNKNOWN,
  }),
);

export const EndpointList = nameSchema(
  'EndpointList',
  object({
    data: object({
      id: STRING,
      name: STRING,
      created: seconds('When the model was released'),
      description: STRING,
      architecture: ARCHITECTURE,
      endpoints: array(EndpointSchema),
    }),
  }),
);
