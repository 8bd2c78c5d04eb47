import { expect, test } from '@jest/globals';
import { StreamStateCache } from '#kernel';

const KB = 1_000;

/** Returns a factory of streams that add their name to `forgotten` when they are evicted. */
function streams(forgotten: string[]) {
  return (name: string, idle = true) => ({ isIdle: idle, evict: () => void forgotten.push(name) });
}

test('evicts the least recently used stream if the limit is exceeded', () => {
  const forgotten: string[] = [];
  const of = streams(forgotten);
  const warm = new StreamStateCache(50 * KB);
  const [a, b, c] = [of('a'), of('b'), of('c')];
  for (const stream of [a, b, a]) warm.touch(stream, 18 * KB);
  expect([warm.size, warm.bytes]).toEqual([2, 40 * KB]);
  warm.touch(c, 18 * KB);
  expect([forgotten, warm.size, warm.bytes]).toEqual([['b'], 2, 40 * KB]);
});

test('evicts many small streams for one that has become large', () => {
  const forgotten: string[] = [];
  const of = streams(forgotten);
  const warm = new StreamStateCache(100 * KB);
  const names = Array.from({ length: 20 }, (_, i) => `${i}`);
  const small = names.map((name) => of(name));
  for (const stream of small) warm.touch(stream, 3 * KB);
  expect(forgotten).toEqual([]);
  warm.touch(small[5] as (typeof small)[0], 60 * KB);
  expect(forgotten).toEqual(['0', '1', '2', '3', '4', '6', '7', '8', '9', '10', '11', '12']);
  expect(warm.bytes).toBeLessThanOrEqual(100 * KB);
});

test('does not evict streams in use', () => {
  const forgotten: string[] = [];
  const of = streams(forgotten);
  const warm = new StreamStateCache(50 * KB);
  for (const stream of [of('busy', false), of('idle'), of('busy too', false)]) warm.touch(stream, 18 * KB);
  warm.touch(of('last', false), 40 * KB);
  expect([forgotten, warm.size]).toEqual([['idle'], 3]);
});
