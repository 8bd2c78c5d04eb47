import { named, type Schema } from '../openapi/operation.ts';
import { array, COUNT, nullable, object, STRING, seconds, text, usd } from '../openapi/schemas.ts';

/** What comes from the upstream may have more fields than are named here. */
const open = (schema: Schema): Schema => ({ ...schema, additionalProperties: true });

export const Usage = named(
  'Usage',
  object({
    prompt_tokens: { ...COUNT, description: 'Input tokens, those from a cache included' },
    completion_tokens: { ...COUNT, description: 'Output tokens, reasoning included' },
    total_tokens: COUNT,
    cost: usd('What was charged'),
    prompt_tokens_details: object({ cached_tokens: COUNT, cache_write_tokens: COUNT }),
    completion_tokens_details: object({ reasoning_tokens: COUNT }),
    cost_details: object({
      upstream_inference_cost: { type: 'null' },
      upstream_inference_prompt_cost: usd('What was charged for input'),
      upstream_inference_completions_cost: usd('What was charged for output'),
    }),
  }),
);

export const Message = named('Message', open(object({ role: text('system, user, assistant, tool …') })));

const HEAD = { id: STRING, created: seconds('When it was made'), model: STRING };
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
      usage: Usage,
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
        usage: Usage,
        error: { type: 'object', description: 'Why the stream broke off, if it did' },
      },
      ['usage', 'error'],
    ),
  ),
  description: 'The data of one event. The last one but one has the usage and its cost; the last one is [DONE].',
});
