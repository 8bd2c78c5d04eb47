import { afterAll, beforeAll, describe } from '@jest/globals';
import { CALLER_TIMEOUT_MS } from '../../../eventstore/src/caller-timeout.ts';
import { type ExtendedDelay, extendTimeouts } from '../replace-delays.ts';
import { testAppends } from './event-store/appending.ts';
import { testSubscriptions } from './event-store/following.ts';
import { testReads } from './event-store/reading.ts';
import type { OpenedStore } from './event-store/subject.ts';

export type { OpenedStore };

/** Tests that every adapter of the `EventStore` port must pass. `open` returns a store without other writers. */
export function eventStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} fulfils the contract of an event store:`, () => {
    let openedStore: OpenedStore;
    let timeouts: ExtendedDelay;
    beforeAll(async () => {
      timeouts = extendTimeouts(CALLER_TIMEOUT_MS); // no test of the contract is about time
      openedStore = await open();
    });
    afterAll(async () => {
      timeouts.end();
      await openedStore.close();
    });

    testAppends(() => openedStore);
    testReads(() => openedStore);
    testSubscriptions(() => openedStore);
  });
}
