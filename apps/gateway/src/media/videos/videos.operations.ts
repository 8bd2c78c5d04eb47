import { jsonContent, type OperationOptions } from '../../openapi/operation.ts';
import { StatusQuery, VideoRequest } from './videos.requests.ts';
import { SubmittedVideoSchema, VideoSchema, VideoWebhookReceivedSchema } from './videos.schemas.ts';

const ID = { description: 'The id of the video', example: 'gen_00112233445566778899aabbccddeeff' };

export const createVideo: OperationOptions = {
  id: 'createVideo',
  tag: 'Inference',
  summary: 'Has a video made',
  description:
    'The price is held, and the video is made behind the answer: look at it by its id, or at `status_url`, every five seconds. What its model leaves to choose is said where something else is asked for.',
  auth: 'key',
  paid: true,
  payPerRequest: true,
  body: VideoRequest,
  example: { model: 'kling/kling-2.5-turbo', prompt: 'A harbour at dusk', duration: 5 },
  response: jsonContent(SubmittedVideoSchema),
  errors: [402, 404, 409, 429, 502, 504],
};

export const getVideo: OperationOptions = {
  id: 'getVideo',
  tag: 'Media',
  summary: 'Returns how far a video is',
  description:
    'Its account sees it, and so do the proof of payment that it was made for and whoever has its signed `status_url`. 202 as long as it is being made, 200 once it is completed or has failed.',
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
  summary: 'Receives a web hook of a vendor that makes videos',
  description: 'Signed by the vendor, at an address that only it was told. It only has a video looked at.',
  auth: 'public',
  raw: true,
  params: {
    vendor: { description: 'The vendor', example: 'fal' },
    token: { description: 'What the vendor was told', example: 'gen_00112233445566778899aabbccddeeff.1.signature' },
  },
  response: jsonContent(VideoWebhookReceivedSchema),
  errors: [401, 404, 413],
};
