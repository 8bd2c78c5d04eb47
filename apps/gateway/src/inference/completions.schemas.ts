import { nameSchema } from '../openapi/operation.ts';
import { array, COUNT, nullable, object, STRING, seconds, text, withExtraFields } from '../openapi/schemas.ts';
import { UsageSchema } from './chat.schemas.ts';

const HEAD = {
  id: STRING,
  object: { const: 'text_completion' },
  created: seconds('When the completion was created'),
  model: STRING,
};
const CHOICE = {
  text: STRING,
  index: COUNT,
  logprobs: { type: 'null' },
  finish_reason: nullable(text('stop, length …')),
};

export const TextCompletion = nameSchema(
  'TextCompletion',
  withExtraFields(object({ ...HEAD, choices: array(object(CHOICE)), usage: UsageSchema })),
);

export const TextCompletionChunk = nameSchema('TextCompletionChunk', {
  ...withExtraFields(
    object(
      {
        ...HEAD,
        choices: array(object(CHOICE)),
        usage: UsageSchema,
        error: { type: 'object', description: 'Why the stream was interrupted, if it was' },
      },
      ['usage', 'error'],
    ),
  ),
  description:
    'The data of one SSE event. The second to last event has the usage and its cost, unless charging failed; the last one is [DONE]. The last event of an interrupted stream has `error`, and the connection is closed without an end of the response.',
});
