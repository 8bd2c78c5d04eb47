import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EventStoreDbEventStore } from '#eventstore';
import { type NewEvent, NO_STREAM } from '#kernel';
import { FakeEventStoreDb, NetworkLink } from '#testing';
import { applyConnectionDefaults } from './connection.ts';

describe('a node that is suspended or disconnected', () => {
  let double: FakeEventStoreDb;
  let cable: NetworkLink;
  const stores: EventStoreDbEventStore[] = [];

  beforeEach(async () => {
    double = await FakeEventStoreDb.start();
    cable = await NetworkLink.open(double.port);
  });

  afterEach(async () => {
    cable.restore();
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await cable.close();
    double.stop();
  });

  function open(connectionString: string): EventStoreDbEventStore {
    const store = new EventStoreDbEventStore({ connectionString, streamPrefixes: ['account-'] });
    stores.push(store);
    return store;
  }

  const fact = (): NewEvent => ({ id: randomUUID(), type: 'Happened', data: {}, metadata: {} });

  test('is detected by missing keep-alive responses, and used again once it responds', async () => {
    const store = open(`esdb://${cable.address}?tls=false&keepAliveInterval=50&keepAliveTimeout=50`);
    const events = [fact()];
    await store.append('account-1', NO_STREAM, events);
    cable.interrupt();
    await expect(store.append('account-1', 0, [fact()])).rejects.toMatchObject({
      name: 'StoreUnavailableError',
      cause: { message: expect.stringContaining('UNAVAILABLE') },
    });
    cable.restore();
    expect(await store.append('account-1', NO_STREAM, events)).toMatchObject({ revision: 0 });
  });

  test('makes a read fail, instead of returning no events, if the store is closed during the read', async () => {
    const store = open(`esdb://${cable.address}?tls=false&keepAliveInterval=200&keepAliveTimeout=200`);
    await store.append('account-1', NO_STREAM, [fact()]);
    cable.interrupt();
    const head = store.readHead('account-1');
    const [outcome] = await Promise.allSettled([head, store.close()]);
    expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'StoreUnavailableError' } });
  });

  test('makes a call fail after the deadline of the connection string', async () => {
    const store = open(`esdb://${cable.address}?tls=false&defaultDeadline=50`);
    cable.interrupt();
    const append = store.append('account-1', NO_STREAM, [fact()]);
    await expect(append).rejects.toMatchObject({ cause: { message: expect.stringContaining('DEADLINE_EXCEEDED') } });
  });

  test('is replaced by the new leader, even if other nodes reported the old leader for a while', async () => {
    const others = await FakeEventStoreDb.start();
    for (const node of [others, double]) node.setAdvertisedLeader(cable.address);
    const store = open(
      `esdb://${others.address},${cable.address}?tls=false&gossipTimeout=1&keepAliveInterval=50&keepAliveTimeout=50`,
    );
    expect(await store.readHead('account-1')).toBeUndefined();
    expect(double.stats.read).toBe(1);
    cable.interrupt();
    await expect(store.append('account-1', NO_STREAM, [fact()])).rejects.toThrow('did not confirm an append');
    const { gossip: before } = others.stats;
    const asked = store.append('account-1', NO_STREAM, [fact()]);
    await others.waitUntil(({ gossip }) => gossip > before); // the client now waits for a connection to the same node
    others.setAdvertisedLeader(undefined);
    await expect(asked).rejects.toThrow('did not confirm an append');
    expect(await store.append('account-1', NO_STREAM, [fact()])).toMatchObject({ revision: 0 });
    expect(others.stats.append).toBe(1);
    others.stop();
  });

  test.each([
    ['esdb://a', 'esdb://a?keepAliveInterval=2000&keepAliveTimeout=2000&gossipTimeout=2'],
    ['esdb://a,b:2?tls=false', 'esdb://a,b:2?tls=false&keepAliveInterval=2000&keepAliveTimeout=2000&gossipTimeout=2'],
    ['esdb://a?', 'esdb://a?keepAliveInterval=2000&keepAliveTimeout=2000&gossipTimeout=2'],
    ['esdb://u:p?x=y@a:1', 'esdb://u:p?x=y@a:1?keepAliveInterval=2000&keepAliveTimeout=2000&gossipTimeout=2'],
    ['esdb://a?KEEPALIVEINTERVAL=9', 'esdb://a?KEEPALIVEINTERVAL=9&keepAliveTimeout=2000&gossipTimeout=2'],
  ])('is detected through parameters that are added to %s, unless they are set', (given, whole) => {
    expect(applyConnectionDefaults(given)).toBe(whole);
  });
});
