import { named } from '../openapi/operation.ts';
import { array, COUNT, nullable, object, open, STRING, seconds, text, usd } from '../openapi/schemas.ts';

export const UsageSchema = named(
  'Usage',
  object({
    prompt_tokens: { ...COUNT, description: 'Input tokens, including cached ones' },
    completion_tokens: { ...COUNT, description: 'Output tokens, including reasoning' },
    total_tokens: COUNT,
    cost: usd('Charged'),
    prompt_tokens_details: object({ cached_tokens: COUNT, cache_write_tokens: COUNT }),
    completion_tokens_details: object({ reasoning_tokens: COUNT }),
    cost_details: object({
      upstream_inference_cost: { type: 'null' },
      upstream_inference_prompt_cost: usd('Charged for input'),
      upstream_inference_completions_cost: usd('Charged for output'),
    }),
  }),
);

export const MessageSchema = named('Message', open(object({ role: text('system, user, assistant, tool …') })));

const HEAD = { id: STRING, created: seconds('When it was created'), model: STRING };
const FINISH = text('stop, length, tool_calls …');

export const ChatCompletion = named(
  'ChatCompletion',
  open(
    object({
      ...HEAD,
      object: { const: 'chat.completion' },
      choices: array(
        open(
          object({
            index: COUNT,
            message: open(object({ role: { const: 'assistant' }, content: { type: ['string', 'null'] } })),
            finish_reason: FINISH,
          }),
        ),
      ),
      system_fingerprint: { type: ['string', 'null'] },
      usage: UsageSchema,
    }),
  ),
);

export const ChatCompletionChunk = named('ChatCompletionChunk', {
  ...open(
    object(
      {
        ...HEAD,
        object: { const: 'chat.completion.chunk' },
        choices: array(
          open(object({ index: COUNT, delta: open(object({})), finish_reason: nullable(FINISH) }, ['finish_reason'])),
        ),
        usage: UsageSchema,
        error: { type: 'object', description: 'Why the stream was interrupted, if it was' },
      },
      ['usage', 'error'],
    ),
  ),
  description: 'The data of one event. The second to last has the usage and its cost; the last is [DONE].',
});
