/** Tests how many events a process with all projections and workflows reads from EventStoreDB. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { ProjectionProgress, projections } from '#projections';
import { FakeEventStoreDb, TestWorld } from '#testing';

const NAMES = projections.map(({ name }) => name);
/** The readers of the sagas: the workflows, and the claims of payments. */
const READERS = ['topups', 'autotopups', 'challenges', 'videos', 'payment-claims'];
const CUSTOMERS = 4;
const CHATS = 5;

let double: FakeEventStoreDb;
let world: TestWorld;
let database: pg.Pool;

beforeAll(async () => {
  double = await FakeEventStoreDb.start();
  world = await TestWorld.openWithSagas({ EVENTSTORE_URL: double.connectionString });
  database = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
});

afterAll(async () => {
  await database.end();
  await world.close();
  double.stop();
});

async function shown(): Promise<void> {
  const end = await world.foundation.store.readLastPosition();
  await world.waitUntil(async () => (await new ProjectionProgress(database).loadAppliedPosition(NAMES)) >= end);
  // A reader that starts late, as on a busy host, reads by itself what the others have read before.
  const reached = 'select from es.checkpoints where reader = any($1) and position >= $2';
  await world.waitUntil(async () => (await database.query(reached, [READERS, end])).rowCount === READERS.length);
  await double.waitUntil(({ open }) => open === 0);
}

test('all projections and workflows of a process together read each event once, without a subscription', async () => {
  const accounts = await Promise.all(Array.from({ length: CUSTOMERS }, () => world.createAccount(1)));
  await shown();
  const before = { facts: (await world.listEvents()).length, ...double.stats };
  // One by one, because a reader that lags by more than a few pages reads by itself (shared-log-reader.spec.ts).
  for (let n = 0; n < CHATS; n++) {
    for (const account of accounts) {
      expect(await world.sendChat(account, 'tokens=1')).toMatchObject({ status: 200 });
      await shown();
    }
  }
  const { pages, entries, subscribe, dropped } = double.stats;
  const facts = (await world.listEvents()).length - before.facts;
  expect(facts).toBeGreaterThanOrEqual(2 * CUSTOMERS * CHATS);
  // Each page also includes the entry at its start position, which was read before.
  expect(entries - before.entries - (pages - before.pages)).toBe(facts);
  expect({ subscribe, dropped }).toEqual({ subscribe: 0, dropped: 0 });
});
