import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { KeyChanges, KeyListQuery, KeyQuery, NewKey } from './keys.requests.ts';
import { KeyList, KeyResponseSchema, KeyRevokedSchema } from './keys.schemas.ts';

const ID = { id: { description: 'The id of the key', example: '0123456789abcdef01234567' } };

export const listKeys: OperationOptions = {
  id: 'listKeys',
  tag: 'Keys',
  summary: 'Lists the keys of an account',
  auth: 'account',
  readsAccountEvents: true,
  query: KeyListQuery,
  response: jsonContent(KeyList),
};

export const createKey: OperationOptions = {
  id: 'createKey',
  tag: 'Keys',
  summary: 'Creates a key',
  description:
    'After a 503 response the key may exist. If it does, GET /keys lists it, and with show_key also its secret.',
  auth: 'account',
  body: NewKey,
  example: { name: 'my laptop', usage_limit_usd: 5, reset_period: 'monthly', models: ['openai/*'] },
  response: jsonContent(KeyResponseSchema),
  rateLimitedAction: 'changes',
  errors: [409],
};

export const getKey: OperationOptions = {
  id: 'getKey',
  tag: 'Keys',
  summary: 'Returns one key',
  auth: 'account',
  readsAccountEvents: true,
  params: ID,
  query: KeyQuery,
  response: jsonContent(KeyResponseSchema),
  errors: [404],
};

export const updateKey: OperationOptions = {
  id: 'updateKey',
  tag: 'Keys',
  summary: 'Updates a key',
  description:
    'Omitted fields stay unchanged; null removes a limit with its period, a period, an expiry, a list of models or all tags. A block holds from the next request on.',
  auth: 'account',
  params: ID,
  body: KeyChanges,
  example: { usage_limit_usd: 10 },
  response: jsonContent(KeyResponseSchema),
  rateLimitedAction: 'changes',
  errors: [404, 409],
};

export const revokeKey: OperationOptions = {
  id: 'revokeKey',
  tag: 'Keys',
  summary: 'Revokes a key permanently',
  auth: 'account',
  params: ID,
  response: jsonContent(KeyRevokedSchema),
  rateLimitedAction: 'changes',
  errors: [404],
};
