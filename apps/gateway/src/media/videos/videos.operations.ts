import { jsonContent, type OperationOptions } from '../../openapi/operation.ts';
import { StatusQuery, VideoRequest } from './videos.requests.ts';
import { SubmittedVideoSchema, VideoSchema, VideoWebhookReceivedSchema } from './videos.schemas.ts';

const ID = { description: 'The id of the video', example: 'gen_00112233445566778899aabbccddeeff' };

export const createVideo: OperationOptions = {
  id: 'createVideo',
  tag: 'Inference',
  summary: 'Generates a video',
  description:
    'The price is held, and the video is generated after the response. Poll the video every five seconds, by its id or by `status_url`. A request with an unsupported value is rejected with a message that lists the supported values of the model.',
  auth: 'key',
  paid: true,
  payPerRequest: true,
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
  params: { id: ID },
  query: StatusQuery,
  response: jsonContent(VideoSchema),
  otherResponses: { 202: jsonContent(VideoSchema) },
  errors: [401, 403, 404],
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
