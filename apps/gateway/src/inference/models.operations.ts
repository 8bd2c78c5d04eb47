import { json, type OperationNotes } from '../openapi/operation.ts';
import { ModelsQuery } from './models.requests.ts';
import { ModelList, ModelSchema } from './models.schemas.ts';

export const listModels: OperationNotes = {
  id: 'listModels',
  tag: 'Models',
  summary: 'Lists models and their prices',
  auth: 'optional',
  query: ModelsQuery,
  answer: json(ModelList),
};

export const getModel: OperationNotes = {
  id: 'getModel',
  tag: 'Models',
  summary: 'Returns one model',
  auth: 'optional',
  params: {
    id: { description: 'The id of a model; its slash may be sent as %2F', example: 'openai/gpt-5-mini' },
  },
  answer: json(ModelSchema),
  errors: [404],
};
