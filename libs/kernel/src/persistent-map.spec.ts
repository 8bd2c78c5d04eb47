import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PersistentMap } from '#kernel';

const step = fc.record({ key: fc.string({ maxLength: 3 }), value: fc.option(fc.integer()) });

describe('a persistent map', () => {
  test('has the entries of a plain map after the same changes, and older versions do not change', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const plain = new Map<string, number>();
        const versions: [PersistentMap<number>, Map<string, number>][] = [];
        let map = PersistentMap.empty<number>();
        for (const { key, value } of steps) {
          versions.push([map, new Map(plain)]);
          map = value === null ? map.without(key) : map.with(key, value);
          if (value === null) plain.delete(key);
          else plain.set(key, value);
        }
        for (const [version, then] of [...versions, [map, plain] as const]) {
          expect(new Map(version.entries())).toEqual(then);
          expect(version.size).toBe(then.size);
        }
        expect(new Map(PersistentMap.from(plain).entries())).toEqual(plain);
      }),
    );
  });
});
