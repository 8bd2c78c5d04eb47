import { expect, test } from '@jest/globals';
import { parseStopDetails } from './stop-details.ts';

test.each([
  ['a category and an explanation', { category: 'bio', explanation: 'No' }, { category: 'bio', explanation: 'No' }],
  ['nothing but their type', {}, { category: null, explanation: null }],
  ['values of other types', { category: 7, explanation: {} }, { category: null, explanation: null }],
  ['a category that is no word', { category: 'a b', explanation: ' ' }, { category: null, explanation: null }],
  ['a secret', { explanation: 'key sk-abcdefghijklmnop1234567890' }, { explanation: 'key …' }],
])('the details of a refusal may have %s', (_, reported, expected) => {
  expect(parseStopDetails({ type: 'refusal', ...reported })).toMatchObject({ type: 'refusal', ...expected });
});

test('an explanation is truncated', () => {
  const { explanation } = parseStopDetails({ type: 'refusal', explanation: 'no '.repeat(9_000) }) ?? {};
  expect(explanation?.length).toBeLessThanOrEqual(500);
});

test.each([undefined, null, 'refusal', [], {}, { type: 'other', explanation: 'No' }])(
  '%j is no refusal',
  (reported) => {
    expect(parseStopDetails(reported)).toBeUndefined();
  },
);
