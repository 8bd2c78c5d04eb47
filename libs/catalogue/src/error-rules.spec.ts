import { expect, test } from '@jest/globals';
import { readProviders } from './catalogue-files.ts';
import { parseProviders } from './provider-file.ts';

const [openai] = readProviders();
const parse = (...errors: object[]) => parseProviders([{ ...openai, errors }]);

test.each<[object, string]>([
  [{ means: 'balance' }, 'errors[0] of provider "openai" needs at least one of status, type, code, message, field'],
  [{ status: 200, means: 'balance' }, 'errors[0].status'],
  [{ status: 402, means: 'empty' }, 'errors[0].means'],
  [{ status: 402, means: 'policy', scope: 'service' }, 'errors[0].scope'],
  [{ status: 402, means: 'balance', scope: 'all' }, 'errors[0].scope'],
  [{ field: 'a..b', means: 'policy' }, 'errors[0].field'],
  [{ statuses: [402], means: 'balance' }, 'statuses'],
])('the rule %j of a provider is rejected with its field', (rule, expected) => {
  expect(() => parse(rule)).toThrow(expected);
});

test('rules of a provider stay in their order', () => {
  const rules = [
    { status: 402, message: 'This*', means: 'balance', scope: 'request' },
    { status: 402, means: 'balance' },
  ];
  expect(parse(...rules)[0]?.errors).toEqual(rules);
});
