import { afterAll, beforeAll, describe } from '@jest/globals';
import { appending } from './event-store/appending.ts';
import { following } from './event-store/following.ts';
import { reading } from './event-store/reading.ts';
import type { Opened } from './event-store/subject.ts';

export type { Opened };

/** What every adapter of the `EventStore` port keeps to. `open` returns a store whose streams have no other writer. */
export function eventStoreContract(name: string, open: () => Promise<Opened>): void {
  describe(`${name} keeps the contract of an event store:`, () => {
    let opened: Opened;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    appending(() => opened);
    reading(() => opened);
    following(() => opened);
  });
}
