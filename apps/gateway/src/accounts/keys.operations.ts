import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { KeyChanges, KeyQuery, NewKey } from './keys.requests.ts';
import { KeyAnswer, KeyList, KeyRevokedSchema } from './keys.schemas.ts';

const ID = { id: { description: 'The id of a key', example: '0123456789abcdef01234567' } };

export const listKeys: OperationOptions = {
  id: 'listKeys',
  tag: 'Keys',
  summary: 'Lists the keys of an account',
  auth: 'account',
  follows: true,
  query: KeyQuery,
  answer: jsonContent(KeyList),
};

export const createKey: OperationOptions = {
  id: 'createKey',
  tag: 'Keys',
  summary: 'Creates a key',
  description:
    'An answer of 503 does not say that there is no new key: GET /keys lists it where there is, and with show_key its secret.',
  auth: 'account',
  body: NewKey,
  example: { name: 'my laptop', usage_limit_usd: 5, reset_period: 'monthly' },
  answer: jsonContent(KeyAnswer),
  gives: 'changes',
  errors: [409],
};

export const getKey: OperationOptions = {
  id: 'getKey',
  tag: 'Keys',
  summary: 'Returns one key',
  auth: 'account',
  follows: true,
  params: ID,
  query: KeyQuery,
  answer: jsonContent(KeyAnswer),
  errors: [404],
};

export const updateKey: OperationOptions = {
  id: 'updateKey',
  tag: 'Keys',
  summary: 'Updates a key',
  description: 'Omitted fields stay unchanged; null removes a limit, a period or an expiry.',
  auth: 'account',
  params: ID,
  body: KeyChanges,
  example: { usage_limit_usd: 10 },
  answer: jsonContent(KeyAnswer),
  gives: 'changes',
  errors: [404, 409],
};

export const revokeKey: OperationOptions = {
  id: 'revokeKey',
  tag: 'Keys',
  summary: 'Revokes a key permanently',
  auth: 'account',
  params: ID,
  answer: jsonContent(KeyRevokedSchema),
  gives: 'changes',
  errors: [404],
};
