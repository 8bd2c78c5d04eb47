import { expect, test } from '@jest/globals';
import { LRUCache } from 'lru-cache';
import { limitEntries } from './cache-options.ts';

test('a cache evicts the entry that was used least recently when it has one more than the limit', () => {
  const cache = new LRUCache<string, string>(limitEntries(2));
  for (const key of ['a', 'b']) cache.set(key, key);
  cache.get('a');
  cache.set('c', 'c');
  expect([...cache.keys()].toSorted()).toEqual(['a', 'c']);
});
