/** The memory of cached streams, compared with the estimate that limits it. */
import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { createStreams, type Streams } from '#application';
import { accountCodec, accountDecider, type DomainEvent, type KeyAccess, UNRESTRICTED_ACCESS } from '#domain';
import {
  type EventStore,
  fold,
  NO_SNAPSHOTS,
  type SnapshotStore,
  type StoredEvent,
  StreamStateCache,
  type StreamStateReader,
} from '#kernel';
import { createCharge, createTestRuntime, sampleCases } from '#testing';

/** The estimate of a stream, divided by its memory. */
const MIN_RATIO = 0.85; // docs/security.md states this limit: the real size is less than a fifth larger
const MAX_RATIO = 1.6;

const at = '2026-11-20T12:00:00.000Z';
const expiresAt = '2026-11-20T12:10:00.000Z';
const query = { model: 'openai/gpt-5-mini', type: 'chat_completion', source: 'api', online: false, free: false };
const charge = createCharge({ price: '7', cost: '5' });

const repeat = (count: number, create: () => readonly unknown[]) => Array.from({ length: count }, create).flat();
const open = () => [{ type: 'AccountOpened', data: { at } }, ...createKey('Default'), ...addCredit()];
const createKey = (name = 'key', access: Partial<KeyAccess> = {}) => [
  {
    type: 'KeyCreated',
    data: {
      keyId: randomUUID(),
      name,
      hash: randomUUID(),
      secret: { key: '', box: '' },
      limit: '90000000000000',
      resetPeriod: 'daily',
      expireAt: null,
      ...UNRESTRICTED_ACCESS,
      ...access,
      at,
    },
  },
];
const createRestrictedKey = () => {
  const models = Array.from({ length: 20 }, () => `provider/${randomUUID()}`);
  return createKey('key', {
    models,
    metadata: Object.fromEntries(models.slice(0, 16).map((id) => [`tag of ${id}`, id])),
  });
};
const addCredit = () => [
  { type: 'CreditAdded', data: { creditId: randomUUID(), method: 'btc', amount: '9000000000000', bonus: '0', at } },
];
const hold = (holdId = randomUUID()) => [
  { type: 'FundsHeld', data: { holdId, keyId: null, owner: 'gateway-1', amount: '10000000', expiresAt, query, at } },
];
const end = (type: 'HoldSettled' | 'HoldExpired' = 'HoldSettled') => {
  const holdId = randomUUID();
  const data = { holdId, keyId: null, held: '10000000', heldAt: at, charged: '7', charge, query, at };
  return [...hold(holdId), { type, data }];
};
const refuse = () => [{ type: 'RequestRefused', data: { requestId: randomUUID(), keyId: null, query, at } }];
const allowInvoice = () => [{ type: 'InvoiceAllowed', data: { topupId: randomUUID(), expiresAt, at } }];
const receive = () => {
  const payment = { backend: 'electrum', id: randomUUID() };
  const rate = { from: 'invoice', price: '100000', at };
  const booked = { units: '12345', amount: '12345000000', bonus: '617000000', rate };
  const data = { accountId: randomUUID(), method: 'btc', payment, ...booked, receivedAt: at, at };
  return [{ type: 'PaymentReceived', data }];
};

interface Stores {
  readonly store: EventStore;
  readonly snapshots: SnapshotStore;
}

function toStored(events: readonly unknown[]): readonly StoredEvent[] {
  const stored = events.map((event, revision) => ({
    ...(event as DomainEvent),
    id: randomUUID(),
    revision,
    position: 0,
  }));
  // A copy through JSON, as from a store: no two streams share an object.
  return (JSON.parse(JSON.stringify(stored)) as StoredEvent[]).map((event) => ({ ...event, position: 1n }));
}

/** A store in which every stream has new events from `createEvents`. */
function createStore(createEvents: () => readonly unknown[]): Stores {
  const store = {
    async *read() {
      yield toStored(createEvents());
    },
  } as Partial<EventStore> as EventStore;
  return { store, snapshots: NO_SNAPSHOTS };
}

/** A store in which every account has a snapshot after new events from `createEvents`, and no later events. */
function createSnapshots(createEvents: () => readonly unknown[]): Stores {
  const lastEvents = new Map<string, StoredEvent>();
  const store = {
    async *read(stream: string) {
      yield [lastEvents.get(stream)];
      lastEvents.delete(stream);
    },
  } as Partial<EventStore> as EventStore;
  const load = async (stream: string) => {
    const events = toStored(createEvents());
    const last = events.at(-1) as StoredEvent;
    lastEvents.set(stream, last);
    const state = fold(accountDecider, accountDecider.getInitialState(), events as never);
    const { revision, position, id: lastEventId } = last;
    return { state: JSON.parse(JSON.stringify(accountCodec.encode(state))), revision, position, lastEventId };
  };
  return { store, snapshots: { ...NO_SNAPSHOTS, load } };
}

function createGarbageCollector(): () => number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
}
const collectGarbage = createGarbageCollector();

/** Returns the estimated memory of `count` streams, divided by what they take on the heap. */
async function compare(count: number, { store, snapshots }: Stores, read: (streams: Streams) => Promise<unknown>) {
  const runtime = createTestRuntime({ sleep: async () => {} });
  const cache = new StreamStateCache();
  const streams = createStreams(store, snapshots, runtime, { cache });
  await read(streams); // what is compiled or cached at the first use does not count
  const [bytesBefore, estimatedBefore] = [collectGarbage(), cache.bytes];
  for (let i = 1; i < count; i++) await read(streams);
  const measured = collectGarbage() - bytesBefore;
  expect(cache.size).toBe(count);
  return (cache.bytes - estimatedBefore) / measured;
}

/** Compares up to three times, because other code of the process can release memory in the meantime. */
async function expectClose(...args: Parameters<typeof compare>): Promise<void> {
  let ratio = 0;
  for (let attempt = 1; attempt <= 3; attempt++) {
    ratio = await compare(...args);
    if (ratio > MIN_RATIO && ratio < MAX_RATIO) return;
  }
  expect(ratio).toBeGreaterThan(MIN_RATIO);
  expect(ratio).toBeLessThan(MAX_RATIO);
}

const readAccount = ({ accounts }: Streams) => accounts.read(randomUUID());

const ACCOUNTS = [
  ['an open account', 2_000, open],
  ['an account with 8 ends', 1_000, () => [...open(), ...repeat(8, () => end())]],
  ['an account with 100 keys', 100, () => [...open(), ...repeat(100, () => createKey())]],
  ['an account with 100 keys with models and tags', 30, () => [...open(), ...repeat(100, createRestrictedKey)]],
  ['an account with 300 open holds', 50, () => [...open(), ...repeat(300, () => hold())]],
  ['an account with 1,000 ends', 50, () => [...open(), ...repeat(1_000, () => end())]],
  ['an account with 1,000 expired holds', 50, () => [...open(), ...repeat(1_000, () => end('HoldExpired'))]],
  ['an account with 20,000 credits', 3, () => [...open(), ...repeat(20_000, addCredit)]],
  ['an account with 20,000 open holds', 3, () => [...open(), ...repeat(20_000, () => hold())]],
] as const;
const SOURCES = [
  ['events', createStore],
  ['a snapshot', createSnapshots],
] as const;
const ACCOUNT_CASES = ACCOUNTS.flatMap(([name, ...account]) =>
  SOURCES.map((source) => [name, ...source, ...account] as const),
);

// Each case collects the garbage of this process twice, which takes long after many other specs.
test.each(sampleCases(ACCOUNT_CASES, 2))(
  '%s takes about the estimated memory, from %s',
  async (_, _source, createStores, count, createEvents) => {
    await expectClose(count, createStores(createEvents), readAccount);
  },
);

const OTHER_STREAMS = [
  ['50 refused requests', 500, () => repeat(50, refuse), 'refusedRequests'],
  ['20 allowed invoices', 500, () => repeat(20, allowInvoice), 'openInvoices'],
  ['a top-up with 1,000 payments', 30, () => repeat(1_000, receive), 'topups'],
] as const;

test.each(sampleCases(OTHER_STREAMS, 1))('%s take about the estimated memory', async (_, count, createEvents, name) => {
  const read = (streams: Streams) => (streams[name] as StreamStateReader<unknown>).read(randomUUID());
  await expectClose(count, createStore(createEvents), read);
});
