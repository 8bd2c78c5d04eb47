import { events, json, type OperationNotes } from '../openapi/operation.ts';
import { ResponsesInput } from './responses.requests.ts';
import { ResponseDeleted, ResponseSchema, ResponseStreamEvent } from './responses.schemas.ts';

const ID = { id: { description: 'The id of a response', example: 'resp_00000000-0000-4000-8000-000000000000' } };

export const createResponse: OperationNotes = {
  id: 'createResponse',
  tag: 'Inference',
  summary: 'Creates a response',
  description: 'OpenAI’s Responses, with every chat model. A response is stored for 30 days unless `store` is false.',
  auth: 'key',
  paid: true,
  body: ResponsesInput,
  example: { model: 'openai/gpt-5-mini', input: 'Hello' },
  answer: { ...json(ResponseSchema), ...events(ResponseStreamEvent) },
  errors: [402, 404, 409, 429, 502, 504],
};

export const getResponse: OperationNotes = {
  id: 'getResponse',
  tag: 'Inference',
  summary: 'Returns a stored response',
  auth: 'key',
  params: ID,
  answer: json(ResponseSchema),
  errors: [404],
};

export const deleteResponse: OperationNotes = {
  id: 'deleteResponse',
  tag: 'Inference',
  summary: 'Deletes a stored response',
  auth: 'key',
  params: ID,
  answer: json(ResponseDeleted),
  errors: [404],
};
