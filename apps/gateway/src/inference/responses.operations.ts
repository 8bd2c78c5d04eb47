import { jsonContent, type OperationOptions, sseContent } from '../openapi/operation.ts';
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

export const createResponse: OperationOptions = {
  id: 'createResponse',
  tag: 'Inference',
  summary: 'Creates a response',
  description:
    'OpenAI’s Responses API, with every chat model. A response is stored for 30 days unless `store` is false; the field `store` of the response shows whether it was stored.',
  auth: 'key',
  paid: true,
  searches: true,
  body: ResponsesInput,
  example: { model: 'openai/gpt-5.4-mini', input: 'Hello' },
  response: { ...jsonContent(ResponseSchema), ...sseContent(ResponseStreamEvent) },
  errors: [402, 404, 409, 410, 429, 502, 504],
};

export const countResponseTokens: OperationOptions = {
  id: 'countResponseTokens',
  tag: 'Inference',
  summary: 'Estimates the input tokens of a response',
  description:
    'Free of charge. Each provider counts tokens in its own way; responses are charged by the provider’s count.',
  auth: 'key',
  largeBody: true,
  body: ConversationInput,
  example: { model: 'openai/gpt-5.4-mini', input: 'Hello' },
  response: jsonContent(ResponseTokens),
  errors: [402, 404, 410],
};

export const compactResponse: OperationOptions = {
  id: 'compactResponse',
  tag: 'Inference',
  summary: 'Compacts a conversation',
  description:
    'The model summarises what it needs to continue. The conversation continues with the returned items as its input. Charged like a response.',
  auth: 'key',
  paid: true,
  body: ConversationInput,
  example: { model: 'openai/gpt-5.4-mini', input: 'Hello' },
  response: jsonContent(CompactedResponse),
  errors: [402, 404, 409, 410, 429, 502, 504],
};

export const listInputItems: OperationOptions = {
  id: 'listInputItems',
  tag: 'Inference',
  summary: 'Lists the input items of a stored response',
  auth: 'key',
  params: ID,
  query: InputItemsQuery,
  response: jsonContent(InputItems),
  errors: [404],
};

export const getResponse: OperationOptions = {
  id: 'getResponse',
  tag: 'Inference',
  summary: 'Returns a stored response',
  auth: 'key',
  params: ID,
  response: jsonContent(ResponseSchema),
  errors: [404],
};

export const deleteResponse: OperationOptions = {
  id: 'deleteResponse',
  tag: 'Inference',
  summary: 'Deletes a stored response',
  auth: 'key',
  params: ID,
  response: jsonContent(ResponseDeleted),
  errors: [404],
};
