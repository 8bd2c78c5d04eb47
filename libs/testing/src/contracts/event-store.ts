import { afterAll, beforeAll, describe } from '@jest/globals';
import { appending } from './event-store/appending.ts';
import { following } from './event-store/following.ts';
import { reading } from './event-store/reading.ts';
import type { OpenedStore } from './event-store/subject.ts';

export type { OpenedStore };

/** What every adapter of the `EventStore` port keeps to. `open` returns a store whose streams have no other writer. */
export function eventStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} keeps the contract of an event store:`, () => {
    let opened: OpenedStore;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    appending(() => opened);
    reading(() => opened);
    following(() => opened);
  });
}
