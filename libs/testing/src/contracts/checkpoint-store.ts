import { beforeEach, describe, expect, test } from '@jest/globals';
import { type CheckpointStore, START_POSITION } from '#kernel';

/** Tests that every adapter of the `CheckpointStore` port must pass. `open` returns a store without checkpoints. */
export function checkpointStoreContract(adapter: string, open: () => Promise<CheckpointStore>): void {
  describe(`${adapter}: a checkpoint`, () => {
    let store: CheckpointStore;
    beforeEach(async () => {
      store = await open();
    });

    test('is at the start until it is saved', async () => {
      expect(await store.load('reader')).toBe(START_POSITION);
    });

    test('belongs to its reader, also at a position above the safe integers of JavaScript', async () => {
      await store.save('reader', 2n ** 62n);
      expect(await store.load('reader')).toBe(2n ** 62n);
      expect(await store.load('another')).toBe(START_POSITION);
    });

    test('advances with each save', async () => {
      for (const position of [10n, 20n]) {
        await store.save('reader', position);
        expect(await store.load('reader')).toBe(position);
      }
    });

    test('never moves back, even if an earlier one is saved afterwards or at the same time', async () => {
      await Promise.all([store.save('reader', 30n), store.save('reader', 10n), store.save('reader', 20n)]);
      await store.save('reader', 5n);
      expect(await store.load('reader')).toBe(30n);
    });
  });
}
