import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { ModelsQuery } from './models.requests.ts';
import { EndpointList, ModelList, ModelSchema } from './models.schemas.ts';

export const listModels: OperationOptions = {
  id: 'listModels',
  tag: 'Models',
  summary: 'Lists models and their prices',
  auth: 'optional',
  query: ModelsQuery,
  response: jsonContent(ModelList),
};

export const getModel: OperationOptions = {
  id: 'getModel',
  tag: 'Models',
  summary: 'Returns one model',
  auth: 'optional',
  params: {
    id: { description: 'The id of a model; its slash may be sent as %2F', example: 'openai/gpt-5-mini' },
  },
  response: jsonContent(ModelSchema),
  errors: [404],
};

const endpoints = {
  tag: 'Models',
  summary: 'Lists the endpoints of a model, with prices, privacy and limits of each',
  description:
    'A request that says nothing of providers is served by those that are `default`, at the price of the model or less. Others are asked where `provider` says anything, or a suffix does.',
  auth: 'optional',
  response: jsonContent(EndpointList),
  errors: [404],
} as const;

export const listEndpoints: OperationOptions = {
  ...endpoints,
  id: 'listEndpoints',
  params: {
    author: { description: 'What stands before the slash of an id', example: 'openai' },
    slug: { description: 'What stands behind it', example: 'gpt-5-mini' },
  },
};

export const listEndpointsById: OperationOptions = {
  ...endpoints,
  id: 'listEndpointsById',
  params: { id: { description: 'An id with its slash as %2F, or an alias', example: 'gpt-5-mini' } },
};
