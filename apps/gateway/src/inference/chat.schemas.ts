import { type JsonSchema, nameSchema } from '../openapi/operation.ts';
import { array, COUNT, nullable, object, STRING, seconds, text, usd, withExtraFields } from '../openapi/schemas.ts';
import { createCostDetailsSchema } from './cost-details.schemas.ts';

export const UsageSchema = nameSchema(
  'Usage',
  object({
    prompt_tokens: { ...COUNT, description: 'Input tokens, including cached ones' },
    completion_tokens: { ...COUNT, description: 'Output tokens, including reasoning' },
    total_tokens: COUNT,
    cost: usd('The charged amount'),
    prompt_tokens_details: object({ cached_tokens: COUNT, cache_write_tokens: COUNT }),
    completion_tokens_details: object({ reasoning_tokens: COUNT }),
    cost_details: createCostDetailsSchema('prompt', 'completions'),
  }),
);

const TEXT_OR_NULL: JsonSchema = { type: ['string', 'null'] };
const OBJECT_OR_NULL: JsonSchema = { type: ['object', 'null'] };
const OPEN_OBJECT: JsonSchema = { type: 'object', additionalProperties: true };

/** Returns the schema of an object that may have other fields, too. Fields that are not in `required` are optional. */
const partialObject = (
  properties: Readonly<Record<string, JsonSchema>>,
  ...required: readonly string[]
): JsonSchema => ({
  ...withExtraFields({ type: 'object', properties }),
  ...(required.length > 0 ? { required } : {}),
});

const hasType = (type: string): JsonSchema => ({ properties: { type: { const: type } }, required: ['type'] });
/** Requires the field if the condition is satisfied, else applies the schema `otherwise`. */
const requireFieldIf = (condition: JsonSchema, field: string, otherwise: JsonSchema = {}): JsonSchema => ({
  if: condition,
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: [field] },
  else: otherwise,
});

const PART = partialObject(
  {
    type: text('text, image_url, file, input_audio …'),
    text: STRING,
    refusal: STRING,
    image_url: { ...partialObject({ url: STRING, detail: TEXT_OR_NULL }, 'url'), type: ['object', 'string'] },
    file: OPEN_OBJECT,
    input_audio: OPEN_OBJECT,
    video_url: OPEN_OBJECT,
    cache_control: OBJECT_OR_NULL,
  },
  'type',
);

const CALL: JsonSchema = {
  ...partialObject({
    id: TEXT_OR_NULL,
    type: TEXT_OR_NULL,
    function: partialObject({ name: STRING, arguments: TEXT_OR_NULL }, 'name'),
    custom: partialObject({ name: STRING, input: TEXT_OR_NULL }, 'name'),
  }),
  ...requireFieldIf(hasType('custom'), 'custom', { required: ['function'] }),
};

export const MessageSchema = nameSchema(
  'Message',
  partialObject(
    {
      role: text('system, user, assistant, tool …', { minLength: 1 }),
      content: { type: ['string', 'array', 'null'], items: PART, description: 'A text, or an array of content parts' },
      name: TEXT_OR_NULL,
      refusal: TEXT_OR_NULL,
      reasoning: TEXT_OR_NULL,
      reasoning_content: TEXT_OR_NULL,
      reasoning_details: { type: ['array', 'null'], items: partialObject({ type: STRING }, 'type') },
      tool_calls: { type: ['array', 'null'], items: CALL },
      tool_call_id: TEXT_OR_NULL,
      cache_control: OBJECT_OR_NULL,
    },
    'role',
  ),
);

export const ToolSchema = nameSchema('Tool', {
  ...partialObject(
    {
      type: text('function, custom, web_search …'),
      function: partialObject({ name: STRING, description: TEXT_OR_NULL, parameters: OBJECT_OR_NULL }, 'name'),
      custom: partialObject({ name: STRING, description: TEXT_OR_NULL }, 'name'),
      cache_control: OBJECT_OR_NULL,
    },
    'type',
  ),
  ...requireFieldIf(hasType('custom'), 'custom', requireFieldIf(hasType('function'), 'function')),
});

/**
 * Biases by the id of their token. The catalogue does not have the vocabularies of chat models, which are all several
 * times smaller than this maximum. Providers ignore an id that a model does not have, or fail.
 */
export const LogitBiasSchema: JsonSchema = {
  type: 'object',
  propertyNames: { pattern: '^(0|[1-9][0-9]{0,5})$', description: 'token ids from 0 to 999999' },
};

export const ToolChoiceSchema: JsonSchema = {
  ...partialObject(
    {
      type: STRING,
      function: partialObject({ name: STRING }, 'name'),
      custom: partialObject({ name: STRING }, 'name'),
    },
    'type',
  ),
  type: ['string', 'object'],
  description: 'none, auto, required, or an object that names a tool',
  ...requireFieldIf(hasType('function'), 'function'),
};

export const ResponseFormatSchema: JsonSchema = {
  ...partialObject(
    {
      type: text('text, json_object or json_schema'),
      json_schema: partialObject({ name: STRING, schema: OBJECT_OR_NULL }),
    },
    'type',
  ),
  ...requireFieldIf(hasType('json_schema'), 'json_schema'),
};

const HEAD = { id: STRING, created: seconds('When the completion was created'), model: STRING };
const FINISH = text('stop, length, tool_calls …');

export const ChatCompletion = nameSchema(
  'ChatCompletion',
  withExtraFields(
    object({
      ...HEAD,
      object: { const: 'chat.completion' },
      choices: array(
        withExtraFields(
          object({
            index: COUNT,
            message: withExtraFields(
              object({ role: { const: 'assistant' }, content: TEXT_OR_NULL, reasoning: TEXT_OR_NULL }),
            ),
            finish_reason: FINISH,
            native_finish_reason: { ...TEXT_OR_NULL, description: 'The provider’s own reason, if it sent one' },
          }),
        ),
      ),
      system_fingerprint: { type: ['string', 'null'] },
      service_tier: { const: 'default' },
      usage: UsageSchema,
    }),
  ),
);

export const ChatCompletionChunk = nameSchema('ChatCompletionChunk', {
  ...withExtraFields(
    object(
      {
        ...HEAD,
        object: { const: 'chat.completion.chunk' },
        choices: array(
          withExtraFields(
            object({ index: COUNT, delta: withExtraFields(object({})), finish_reason: nullable(FINISH) }, [
              'finish_reason',
            ]),
          ),
        ),
        usage: UsageSchema,
        error: { type: 'object', description: 'Why the stream was interrupted, if it was' },
      },
      ['usage', 'error'],
    ),
  ),
  description:
    'The data of one SSE event. The second to last event has the usage and its cost, unless charging failed; the last one is [DONE]. The last event of an interrupted stream has `error`, and the connection is closed without an end of the response.',
});
