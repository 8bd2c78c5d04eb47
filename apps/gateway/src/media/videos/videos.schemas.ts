import { nameSchema } from '../../openapi/operation.ts';
import { object, STRING, seconds, text, usd } from '../../openapi/schemas.ts';

const ID = text('The id of the video', { examples: ['gen_00112233445566778899aabbccddeeff'] });
const CREATED = seconds('When the video was requested');
const STATUS_URL = text('A signed URL of this video that needs no credential and expires after 24 hours');

export const SubmittedVideoSchema = nameSchema(
  'SubmittedVideo',
  object({
    id: ID,
    model: STRING,
    status: { enum: ['pending', 'completed', 'failed'] },
    created: CREATED,
    estimated_cost: usd('The held amount, which is the maximum charge'),
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
        description: 'The file of a completed video; missing once deleted, at the earliest a day after completion',
        ...object({
          url: text('A signed URL that needs no credential and expires after at most 24 hours'),
          content_type: text('The media type, detected from the content', { examples: ['video/mp4'] }),
        }),
      },
      cost: usd('The charged amount of a completed video'),
      error: text('Why the video failed; nothing was charged'),
      error_code: text('The code of the failure, such as `timeout`'),
    },
    ['data', 'cost', 'error', 'error_code'],
  ),
);

export const VideoWebhookReceivedSchema = nameSchema('VideoHookReceived', object({ status: { const: 'success' } }));
