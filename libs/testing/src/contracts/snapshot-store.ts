import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Snapshot, SnapshotStore } from '#kernel';

const LAST = '0c5e9a9e-3f3b-4f0e-9c3c-1f7f3b1d2a10';

function createSnapshot(revision: number, state: unknown = revision): Snapshot {
  return { revision, position: BigInt(revision) * 10n, lastEventId: LAST, state };
}

/** Tests that every adapter of the `SnapshotStore` port must pass. `open` returns a store without snapshots. */
export function snapshotStoreContract(adapter: string, open: () => Promise<SnapshotStore>): void {
  describe(`${adapter}: a snapshot`, () => {
    let store: SnapshotStore;
    beforeEach(async () => {
      store = await open();
    });

    test('preserves text, nested structure, and a position above the safe integers of JavaScript', async () => {
      const state = { text: 'ä"\\☕', list: [[1, null], { a: '1' }] };
      const snapshot = { revision: 7, position: 2n ** 62n, lastEventId: LAST, state };
      await store.save('account-a', '1', snapshot);
      expect(await store.load('account-a', '1')).toEqual(snapshot);
    });

    test('has the state at the time of the save, which nobody who saves or loads it can change', async () => {
      const state = { list: [1], gap: undefined };
      await store.save('account-a', '1', createSnapshot(7, state));
      state.list.push(2);
      const loaded = (await store.load('account-a', '1')) as Snapshot & { readonly state: { readonly list: number[] } };
      loaded.state.list.push(3);
      expect((await store.load('account-a', '1'))?.state).toStrictEqual({ list: [1] });
    });

    test('is loaded only with its stream and version', async () => {
      await store.save('account-a', '1', createSnapshot(7));
      expect(await store.load('account-b', '1')).toBeUndefined();
      expect(await store.load('account-a', '2')).toBeUndefined();
    });

    test('is replaced by one of its version only if that is later, regardless of the order of saves', async () => {
      await Promise.all([3, 9, 5, 1, 9, 7].map((revision) => store.save('account-a', '1', createSnapshot(revision))));
      expect(await store.load('account-a', '1')).toEqual(createSnapshot(9));
      await store.save('account-a', '1', createSnapshot(9, 'another'));
      expect(await store.load('account-a', '1')).toEqual(createSnapshot(9));
    });

    test('is replaced by one of another version, even if that is earlier', async () => {
      await store.save('account-a', '1', createSnapshot(9));
      await store.save('account-a', '2', createSnapshot(5));
      expect(await store.load('account-a', '2')).toEqual(createSnapshot(5));
      expect(await store.load('account-a', '1')).toBeUndefined();
    });

    test('can be removed, with every version of its stream only, and saved again at an earlier revision', async () => {
      for (const stream of ['account-a', 'account-b']) await store.save(stream, '1', createSnapshot(9));
      await store.drop('account-a');
      await store.drop('account-c');
      expect(await store.load('account-a', '1')).toBeUndefined();
      expect(await store.load('account-b', '1')).toEqual(createSnapshot(9));
      await store.save('account-a', '1', createSnapshot(5));
      expect(await store.load('account-a', '1')).toEqual(createSnapshot(5));
    });
  });
}
