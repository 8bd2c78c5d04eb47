import { nameSchema } from '../openapi/operation.ts';
import { array, COUNT, nullable, object, STRING, text, usd, withExtraFields } from '../openapi/schemas.ts';
import { createCostDetailsSchema } from './cost-details.schemas.ts';

export const AnthropicTurnSchema = nameSchema(
  'MessageTurn',
  withExtraFields(object({ role: text('user or assistant'), content: { type: ['string', 'array'] } }, ['content'])),
);

const INPUT = {
  input_tokens: { ...COUNT, description: 'Input tokens that were neither read from the cache nor written to it' },
  cache_creation_input_tokens: COUNT,
  cache_creation: object({ ephemeral_5m_input_tokens: COUNT, ephemeral_1h_input_tokens: COUNT }),
  cache_read_input_tokens: COUNT,
};

/** The usage in `message_start` has no cost, because the cost is known only at the end of a stream. */
export const MessageUsageSchema = nameSchema(
  'MessageUsage',
  object(
    {
      ...INPUT,
      output_tokens: { ...COUNT, description: 'Output tokens, including thinking' },
      output_tokens_details: object({ thinking_tokens: COUNT }),
      server_tool_use: object({ web_search_requests: COUNT, web_fetch_requests: COUNT }),
      service_tier: { const: 'standard' },
      cost: usd('The charged amount'),
      cost_details: createCostDetailsSchema('input', 'output'),
    },
    ['output_tokens_details', 'server_tool_use', 'cost', 'cost_details'],
  ),
);

const STOP = {
  stop_reason: nullable(
    text('Why the message ended', {
      enum: ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal'],
    }),
  ),
  stop_sequence: { type: ['string', 'null'], description: 'The stop sequence that ended the message' },
  stop_details: nullable(
    object({
      type: { const: 'refusal' },
      category: { type: ['string', 'null'], description: 'The policy that the request violates, such as `cyber`' },
      explanation: { type: ['string', 'null'], description: 'Why the model refused, for people' },
    }),
  ),
};

export const AnthropicMessageSchema = nameSchema(
  'AnthropicMessage',
  object({
    id: text('`msg_` and the id of the request'),
    type: { const: 'message' },
    role: { const: 'assistant' },
    model: STRING,
    content: array(withExtraFields(object({ type: text('text, thinking, tool_use …') }))),
    ...STOP,
    usage: MessageUsageSchema,
  }),
);

export const MessageStreamEvent = nameSchema('MessageStreamEvent', {
  ...withExtraFields(
    object(
      {
        type: text('message_start, content_block_delta, message_delta …'),
        message: AnthropicMessageSchema,
        index: COUNT,
        delta: withExtraFields(object({})),
        usage: MessageUsageSchema,
        error: withExtraFields(object({ type: STRING, message: STRING })),
      },
      ['message', 'index', 'delta', 'usage', 'error'],
    ),
  ),
  description:
    'The data of one SSE event. `message_delta` has the usage and its cost; an interrupted stream ends with `error`.',
});

export const TokenCount = nameSchema('TokenCount', object({ input_tokens: COUNT }));
