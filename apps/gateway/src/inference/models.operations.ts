import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { ModelsQuery } from './models.requests.ts';
import { EndpointList, ModelList, ModelSchema } from './models.schemas.ts';

const ANTHROPIC_FORMAT =
  'With the header `anthropic-version`, which Anthropic’s clients send, the response has the format of Anthropic’s Models API.';

export const listModels: OperationOptions = {
  id: 'listModels',
  tag: 'Models',
  summary: 'Lists models and their prices',
  description: ANTHROPIC_FORMAT,
  sharedWithAnthropic: true,
  auth: 'optional',
  cacheable: true,
  query: ModelsQuery,
  response: jsonContent(ModelList),
};

export const getModel: OperationOptions = {
  id: 'getModel',
  tag: 'Models',
  summary: 'Returns one model',
  description: ANTHROPIC_FORMAT,
  sharedWithAnthropic: true,
  auth: 'optional',
  cacheable: true,
  params: {
    id: { description: 'The id of a model; its slash may be sent as %2F', example: 'openai/gpt-5.4-mini' },
  },
  response: jsonContent(ModelSchema),
  errors: [404, 410],
};

const endpoints = {
  tag: 'Models',
  summary: 'Lists the endpoints of a model with their prices, privacy and limits',
  description:
    'Requests without provider preferences are served by the `default` endpoints, at the price of the model or less. Other endpoints are used only if none of these can serve the request, or if `provider` or a suffix of the model is set.',
  auth: 'optional',
  cacheable: true,
  response: jsonContent(EndpointList),
  errors: [404, 410],
} as const;

export const listEndpoints: OperationOptions = {
  ...endpoints,
  id: 'listEndpoints',
  params: {
    author: { description: 'The part of an id before the slash', example: 'openai' },
    slug: { description: 'The part of an id after the slash', example: 'gpt-5.4-mini' },
  },
};

export const listEndpointsById: OperationOptions = {
  ...endpoints,
  id: 'listEndpointsById',
  params: { id: { description: 'An id with its slash as %2F, or an alias', example: 'gpt-5.4-mini' } },
};
