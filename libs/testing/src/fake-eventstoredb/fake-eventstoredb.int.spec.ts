import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { EventStoreDBClient, jsonEvent, NO_STREAM, streamNameFilter } from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FakeEventStoreDb } from '#testing';

/** Tests behaviour that was observed in EventStoreDB 23.10.6 with its own client. */
describe('FakeEventStoreDb', () => {
  let double: FakeEventStoreDb;
  let client: EventStoreDBClient;

  beforeEach(async () => {
    double = await FakeEventStoreDb.start();
    // Like the adapter: one call for each append.
    client = Object.assign(EventStoreDBClient.connectionString(double.connectionString), {
      supports: async () => false,
    });
  });

  afterEach(async () => {
    await client.dispose();
    double.stop();
  });

  const facts = (count: number) =>
    Array.from({ length: count }, () => jsonEvent({ id: randomUUID(), type: 'Happened', data: {} }));

  test('drops a live subscription with 33 pending events, but not one with 31', async () => {
    const subscription = client.subscribeToAll({ filter: streamNameFilter({ prefixes: ['account-'] }) });
    subscription.on('data', () => {});
    const failed = once(subscription, 'error');
    await double.waitUntil(({ caughtUp }) => caughtUp > 0);
    await client.appendToStream('account-1', facts(31), { expectedRevision: NO_STREAM });
    expect(double.stats.dropped).toBe(0);
    await client.appendToStream('account-2', facts(33), { expectedRevision: NO_STREAM });
    const [error] = await failed;
    expect(error).toMatchObject({
      code: 10,
      message: expect.stringContaining(
        'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
      ),
    });
    expect(double.stats.dropped).toBe(1);
  });

  test('rejects a repeated append with a timeout while the first is in flight, and accepts a later one', async () => {
    const events = facts(2);
    const append = () => client.appendToStream('account-1', events, { expectedRevision: NO_STREAM });
    const answers = await Promise.allSettled([append(), append()]);
    expect(answers).toMatchObject([
      { status: 'fulfilled', value: { nextExpectedRevision: 1n } },
      {
        status: 'rejected',
        reason: { code: 10, message: expect.stringContaining('Operation timed out: Commit phase timeout') },
      },
    ]);
    expect(await append()).toMatchObject({ nextExpectedRevision: 1n });
  });
});
