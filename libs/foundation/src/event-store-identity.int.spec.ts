import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import { NO_STREAM } from '#kernel';
import { createMigratedDatabase, type TestDatabase } from '#testing';
import { assertSameEventStore } from './event-store-identity.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

async function storeWith(facts: number): Promise<MemoryEventStore> {
  const store = new MemoryEventStore();
  for (let n = 0; n < facts; n++)
    await store.append('account-1', n === 0 ? NO_STREAM : n - 1, [
      { id: randomUUID(), type: 'Happened', data: {}, metadata: {} },
    ]);
  return store;
}

test('a start is rejected if the event store lacks the events from which the database was built', async () => {
  const [empty, ours, others] = [await storeWith(0), await storeWith(2), await storeWith(2)];
  const start = (store: MemoryEventStore) => assertSameEventStore(database.url, store);
  await start(empty); // the database was not built from any events yet
  await start(ours);
  await start(ours);
  await expect(start(others)).rejects.toThrow('The event store has other events, but the database was built from');
  await expect(start(empty)).rejects.toThrow('The event store has no events, but the database was built from');
  await start(ours);
});
