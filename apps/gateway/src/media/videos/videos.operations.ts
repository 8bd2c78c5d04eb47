import { jsonContent, type OperationOptions } from '../../openapi/operation.ts';
import { VIDEO_CONTENT } from '../send-file.ts';
import { REFERENCE_FIELD } from './video-body.ts';
import { StatusQuery, VideoContentQuery, VideoRequest, VideosQuery } from './videos.requests.ts';
import { SubmittedVideoSchema, VideoListSchema, VideoSchema, VideoWebhookReceivedSchema } from './videos.schemas.ts';

/** Maximum size of an uploaded image. */
const MAX_IMAGE_BYTES = 25 * 1024 * 1024;
const ID = { description: 'The id of the video', example: 'gen_00112233445566778899aabbccddeeff' };

export const createVideo: OperationOptions = {
  id: 'createVideo',
  tag: 'Inference',
  summary: 'Generates a video',
  description:
    'The price is held, and the video is generated after the response. Poll the video every five seconds, by its id or by `status_url`. A request with an unsupported value is rejected with a message that lists the supported values of the model. A form, which OpenAI’s clients send, gets the video in their form: its id begins with `video_`.',
  auth: 'key',
  paid: true,
  payPerRequest: true,
  polled: true,
  upload: { maxBytes: MAX_IMAGE_BYTES, files: [REFERENCE_FIELD], optional: [REFERENCE_FIELD], acceptsJson: true },
  body: VideoRequest,
  example: { model: 'kling/kling-2.5-turbo', prompt: 'A harbour at dusk', duration: 5 },
  response: jsonContent(SubmittedVideoSchema),
  errors: [402, 404, 409, 410, 429, 502, 504],
};

export const getVideo: OperationOptions = {
  id: 'getVideo',
  tag: 'Media',
  summary: 'Returns the status of a video',
  description:
    'Requires a credential of the account that requested the video, the proof of payment for the video, or the signed `status_url`. The HTTP status is 202 while the video is being generated, and 200 once it is completed or has failed.',
  auth: 'optional',
  acceptsProof: true,
  polled: true,
  params: { id: ID },
  query: StatusQuery,
  response: jsonContent(VideoSchema),
  otherResponses: { 202: jsonContent(VideoSchema) },
  errors: [401, 403, 404],
};

export const listVideos: OperationOptions = {
  id: 'listVideos',
  tag: 'Media',
  summary: 'Lists the videos of the account',
  description: 'Lists the videos of all keys of the account, in the form of OpenAI’s clients.',
  auth: 'key',
  readsAccountEvents: true,
  query: VideosQuery,
  response: jsonContent(VideoListSchema),
};

export const getVideoContent: OperationOptions = {
  id: 'getVideoContent',
  tag: 'Media',
  summary: 'Returns the file of a video',
  description:
    'Requires a credential of the account that requested the video, or the proof that paid for the video. The file of a video that is still being generated does not exist (404). Range requests are supported.',
  auth: 'optional',
  acceptsProof: true,
  params: { id: ID },
  query: VideoContentQuery,
  response: VIDEO_CONTENT,
  errors: [401, 404, 416],
  otherResponses: { 206: VIDEO_CONTENT, 304: {} },
};

export const receiveVideoWebhook: OperationOptions = {
  id: 'receiveVideoHook',
  tag: 'Media',
  summary: 'Receives a webhook of a video provider',
  description:
    'The provider signs the webhook, and only this provider receives the URL. A webhook triggers a poll of the video.',
  auth: 'public',
  raw: true,
  params: {
    vendor: { description: 'The name of the provider', example: 'fal' },
    token: {
      description: 'The token that the provider received with the job',
      example: 'gen_00112233445566778899aabbccddeeff.1.signature',
    },
  },
  response: jsonContent(VideoWebhookReceivedSchema),
  errors: [401, 404, 413],
};
