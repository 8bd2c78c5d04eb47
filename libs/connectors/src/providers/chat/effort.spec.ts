import { expect, test } from '@jest/globals';
import type { Reasoning } from '#application';
import { selectEffort } from './effort.ts';

const O3 = ['low', 'medium', 'high'] as const;

test.each<[Reasoning['effort'], readonly NonNullable<Reasoning['effort']>[], Reasoning['effort']]>([
  ['none', O3, 'low'],
  ['minimal', O3, 'low'],
  ['xhigh', O3, 'high'],
  ['max', O3, 'high'],
  ['minimal', ['none', 'low', 'medium', 'high', 'xhigh'], 'low'],
  ['max', ['none', 'low', 'medium', 'high', 'xhigh'], 'xhigh'],
  ['max', ['none', 'low', 'medium', 'high', 'xhigh', 'max'], 'max'],
  ['none', ['minimal', 'low', 'medium', 'high'], 'minimal'],
  ['xhigh', ['low', 'medium', 'high', 'max'], 'high'],
])('the effort %s is sent to a model that supports %j as %s', (effort, efforts, expected) => {
  expect(selectEffort(effort ? { effort } : {}, { efforts })).toBe(expected);
});

test.each<[Reasoning, Reasoning['effort']]>([
  [{ enabled: false }, 'low'],
  [{ enabled: true }, 'medium'],
  [{ max_tokens: 0 }, 'low'],
  [{ max_tokens: 900 }, 'high'],
  [{}, undefined],
  [{ exclude: true }, undefined],
])('the settings %j become the effort %s of a model that always reasons', (settings, expected) => {
  expect(selectEffort(settings, { efforts: O3 }, 1_000)).toBe(expected);
});
