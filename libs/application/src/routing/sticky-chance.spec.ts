import { expect, test } from '@jest/globals';
import { calculateStickyChance } from './sticky-chance.ts';

const PAYER = { payer: 'account-1', model: 'v/m' };
const system = (content: unknown) => ({ role: 'system', content });
const user = (content: unknown) => ({ role: 'user', content });
const getChance = (messages: readonly object[], fields: object = {}, origin = PAYER) =>
  calculateStickyChance({ messages: messages as never, ...fields }, origin);

const FIRST = [system('Be brief'), user('Hello')];
const LONG = 'x'.repeat(5_000);

test('is the same for all turns of a conversation', () => {
  const later = [...FIRST, { role: 'assistant', content: 'Hi' }, user('Again')];
  expect(getChance(later)).toBe(getChance(FIRST));
});

test('is the same for conversations with the same long instructions', () => {
  expect(getChance([system(LONG), user('a')])).toBe(getChance([system(LONG), user('b')]));
  expect(getChance([system(`${LONG}1`), user('a')])).toBe(getChance([system(`${LONG}2`), user('a')]));
});

test('differs between accounts, models, instructions and first messages', () => {
  const chances = [
    getChance(FIRST),
    getChance(FIRST, {}, { ...PAYER, payer: 'account-2' }),
    getChance(FIRST, {}, { ...PAYER, model: 'v/other' }),
    getChance([system('Be long'), user('Hello')]),
    getChance([system('Be brief'), user('Bye')]),
    getChance([user('Hello')]),
    getChance([user([{ type: 'text', text: 'Hello' }])]),
    getChance([user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,A' } }])]),
  ];
  expect(new Set(chances).size).toBe(chances.length);
});

test('depends on the prompt_cache_key alone if there is one', () => {
  const key = { prompt_cache_key: 'k' };
  expect(getChance([user('a')], key)).toBe(getChance([user('b')], key));
  expect(getChance([user('a')], key)).not.toBe(getChance([user('a')], { prompt_cache_key: 'other' }));
  expect(getChance([user('a')], { prompt_cache_key: '' })).toBe(getChance([user('a')]));
});

test('is uniformly distributed', () => {
  const chances = Array.from({ length: 1_000 }, (_, i) => getChance([user(`Question ${i}`)]));
  expect(Math.min(...chances)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...chances)).toBeLessThan(1);
  const low = chances.filter((chance) => chance < 0.5).length;
  expect(Math.abs(low - 500)).toBeLessThan(80);
});
