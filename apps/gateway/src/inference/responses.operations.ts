import { events, json, type OperationNotes } from '../openapi/operation.ts';
import { ConversationInput, InputItemsQuery, ResponsesInput } from './responses.requests.ts';
import {
  CompactedResponse,
  InputItems,
  ResponseDeleted,
  ResponseSchema,
  ResponseStreamEvent,
  ResponseTokens,
} from './responses.schemas.ts';

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

export const countResponseTokens: OperationNotes = {
  id: 'countResponseTokens',
  tag: 'Inference',
  summary: 'Estimates the input tokens of a response',
  description: 'Costs nothing. Vendors count each in their own way; what is charged is what they report.',
  auth: 'key',
  largeBody: true,
  body: ConversationInput,
  example: { model: 'openai/gpt-5-mini', input: 'Hello' },
  answer: json(ResponseTokens),
  errors: [404],
};

export const compactResponse: OperationNotes = {
  id: 'compactResponse',
  tag: 'Inference',
  summary: 'Compacts a conversation',
  description:
    'The model writes down what it needs to go on; the items of the answer are the input that the conversation goes on with. Charged as a response.',
  auth: 'key',
  paid: true,
  body: ConversationInput,
  example: { model: 'openai/gpt-5-mini', input: 'Hello' },
  answer: json(CompactedResponse),
  errors: [402, 404, 409, 429, 502, 504],
};

export const listInputItems: OperationNotes = {
  id: 'listInputItems',
  tag: 'Inference',
  summary: 'Lists what a stored response was made of',
  auth: 'key',
  params: ID,
  query: InputItemsQuery,
  answer: json(InputItems),
  errors: [404],
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
