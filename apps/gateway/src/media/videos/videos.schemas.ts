import { nameSchema } from '../../openapi/operation.ts';
import { array, BOOLEAN, nullable, object, STRING, seconds, text, usd } from '../../openapi/schemas.ts';

const STATUS_URL = text(
  'A signed URL of the status that needs no credential and expires 24 hours after the video was requested',
);
/** Null fields have a value in OpenAI's API only. */
const COMMON = {
  id: text('The id of the video. It begins with `video_` if the video was requested by a form, and in lists', {
    examples: ['gen_00112233445566778899aabbccddeeff'],
  }),
  object: { const: 'video' },
  model: STRING,
  status: text('For an id that begins with `video_`, `queued` or `in_progress` instead of `pending`', {
    enum: ['pending', 'queued', 'in_progress', 'completed', 'failed'],
  }),
  progress: { type: 'integer', description: 'In percent: 100 once the video is completed, and 0 before' },
  created: seconds('When the video was requested'),
  created_at: seconds('When the video was requested'),
  completed_at: nullable(seconds('When the video was completed')),
  expires_at: nullable(seconds('When the file of a completed video is deleted')),
  seconds: text('The requested duration', { examples: ['5'] }),
  size: text('The nominal size, from the ratio and the resolution', { examples: ['1280x720'] }),
  prompt: { type: 'null' },
  remixed_from_video_id: { type: 'null' },
  polling_url: STATUS_URL,
};

export const SubmittedVideoSchema = nameSchema(
  'SubmittedVideo',
  object(
    {
      ...COMMON,
      error: { type: 'null', description: 'Only if the id begins with `video_`' },
      estimated_cost: usd('The held amount, which is the maximum charge'),
      status_url: STATUS_URL,
    },
    ['error'],
  ),
);

export const VideoSchema = nameSchema(
  'Video',
  object(
    {
      ...COMMON,
      data: {
        description: 'The file of a completed video; missing once deleted, at the earliest a day after completion',
        ...object({
          url: text('A signed URL that needs no credential and expires after at most 24 hours'),
          content_type: text('The media type, detected from the content', { examples: ['video/mp4'] }),
        }),
      },
      unsigned_urls: { ...array(STRING), description: 'The same URL as in `data`' },
      cost: usd('The charged amount of a completed video'),
      usage: object({ cost: usd('The charged amount of a completed video') }),
      error: {
        type: ['string', 'object', 'null'],
        description:
          'Why the video failed; nothing was charged. If the id begins with `video_`, an object with `code` and `message`, or null',
      },
      error_code: text('The code of the failure, such as `timeout`'),
    },
    ['data', 'unsigned_urls', 'cost', 'usage', 'error', 'error_code'],
  ),
);

export const VideoListSchema = nameSchema(
  'VideoList',
  object({
    object: { const: 'list' },
    data: array(VideoSchema),
    first_id: nullable(STRING),
    last_id: nullable(STRING),
    has_more: BOOLEAN,
  }),
);

export const VideoWebhookReceivedSchema = nameSchema('VideoHookReceived', object({ status: { const: 'success' } }));
