import { nameSchema } from '../../openapi/operation.ts';
import { object, STRING, seconds, text, usd } from '../../openapi/schemas.ts';

const ID = text('The id of the video', { examples: ['gen_00112233445566778899aabbccddeeff'] });
const CREATED = seconds('When it was asked for');
const STATUS_URL = text('A signed address of this video that needs no credential and lasts 24 hours');

export const SubmittedVideoSchema = nameSchema(
  'SubmittedVideo',
  object({
    id: ID,
    model: STRING,
    status: { enum: ['pending', 'completed', 'failed'] },
    created: CREATED,
    estimated_cost: usd('What is held, and will be charged at most'),
    status_url: STATUS_URL,
  }),
);

export const VideoSchema = nameSchema(
  'Video',
  object(
    {
      id: ID,
      model: STRING,
      status: { enum: ['pending', 'completed', 'failed'] },
      created: CREATED,
      data: {
        description: 'Once it is completed, until the file is deleted a day later',
        ...object({
          url: text('A signed address that needs no credential and lasts 24 hours'),
          content_type: text('What it is, by its content', { examples: ['video/mp4'] }),
        }),
      },
      cost: usd('Charged, once it is completed'),
      error: text('Why it failed; nothing was charged then'),
      error_code: text('The same for programs, such as `timeout`'),
    },
    ['data', 'cost', 'error', 'error_code'],
  ),
);

export const VideoWebhookReceivedSchema = nameSchema('VideoHookReceived', object({ status: { const: 'success' } }));
