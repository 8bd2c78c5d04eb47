import { randomUUID } from 'node:crypto';
import { binaryEvent, EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EventStoreDbEventStore } from '#eventstore';
import { START_POSITION, type StoredEvent } from '#kernel';
import { FakeEventStoreDb } from '#testing';

describe('an entry of the log', () => {
  let double: FakeEventStoreDb;
  let client: EventStoreDBClient;
  let store: EventStoreDbEventStore;

  beforeEach(async () => {
    double = await FakeEventStoreDb.start();
    const { connectionString } = double;
    client = Object.assign(EventStoreDBClient.connectionString(connectionString), { supports: async () => false });
    store = new EventStoreDbEventStore({ connectionString, streamPrefixes: ['account-', 'kontó-'] });
  });

  afterEach(async () => {
    await client.dispose();
    await store.close();
    double.stop();
  });

  async function history(): Promise<readonly StoredEvent[]> {
    const facts: StoredEvent[] = [];
    for await (const { events } of store.readAll(START_POSITION)) facts.push(...events);
    return facts;
  }

  async function inStream(stream: string): Promise<readonly StoredEvent[]> {
    const facts: StoredEvent[] = [];
    for await (const events of store.read(stream, -1)) facts.push(...events);
    return facts;
  }

  test.each([
    ['with all kinds of values', { text: 'żółć "\n\u2028', none: null, list: [1, 2.5, -0, { deep: [[]] }], yes: true }],
    ['empty', {}],
    ['a megabyte', { text: 'x'.repeat(1_000_000) }],
    ['not an object', 'text'],
  ])('equals the event read from its stream: %s', async (_, data) => {
    const events = [{ actor: 'key:ü', $correlationId: randomUUID() }, {}, undefined].map((metadata) =>
      jsonEvent({ type: 'Happened', data: data as never, metadata: metadata as never }),
    );
    for (const stream of ['account-1', 'kontó-1', 'accounting-1'])
      for (const [n, event] of events.entries())
        await client.appendToStream(
          stream,
          { ...event, id: randomUUID() },
          { expectedRevision: n === 0 ? NO_STREAM : BigInt(n - 1) },
        );
    const ofStreams = [...(await inStream('account-1')), ...(await inStream('kontó-1'))];
    expect(ofStreams).toHaveLength(6);
    expect(await history()).toEqual(ofStreams);
  });

  test('has its data as bytes if its content type is not JSON', async () => {
    const bytes = Buffer.from([1, 255, 0]);
    await client.appendToStream('account-1', binaryEvent({ type: 'Picture', data: bytes }), {
      expectedRevision: NO_STREAM,
    });
    const [picture] = await history();
    expect(Buffer.from(picture?.data as Uint8Array)).toEqual(bytes);
  });
});
