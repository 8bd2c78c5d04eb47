import { afterAll, beforeAll, describe } from '@jest/globals';
import { testAppends } from './event-store/appending.ts';
import { testSubscriptions } from './event-store/following.ts';
import { testReads } from './event-store/reading.ts';
import type { OpenedStore } from './event-store/subject.ts';

export type { OpenedStore };

/** What every adapter of the `EventStore` port keeps to. `open` returns a store whose streams have no other writer. */
export function eventStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} keeps the contract of an event store:`, () => {
    let openedStore: OpenedStore;
    beforeAll(async () => {
      openedStore = await open();
    });
    afterAll(() => openedStore.close());

    testAppends(() => openedStore);
    testReads(() => openedStore);
    testSubscriptions(() => openedStore);
  });
}
