import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createStreams, type Hold, PayerFactory, type Streams, UpstreamError } from '#application';
import { type AccountCommand, UNRESTRICTED_ACCESS } from '#domain';
import { PostgresEventStore } from '#eventstore';
import { NO_SNAPSHOTS, parseUsd, Rejection, UnknownOutcomeError } from '#kernel';
import {
  createCharge,
  createMigratedDatabase,
  createTestRuntime,
  SystemClock,
  TEST_CAUSE,
  type TestDatabase,
} from '#testing';

/** More holds than the state of an account remembers after their end. */
const OTHER_ENDS = 1_100;
const ACCOUNT = randomUUID();
const DELIVERED = { isDelivered: true };
const clock = new SystemClock();
const charge = createCharge({ price: '7', cost: '5' });
const amount = parseUsd('0.001');
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const failure = new UpstreamError('upstream_error', 'it failed');

let database: TestDatabase;
let store: PostgresEventStore;

/** The write paths of a new process, and its payer. */
function startProcess(change: (streams: Streams) => Streams = (streams) => streams) {
  const runtime = createTestRuntime({ sleep: async () => {} });
  const streams = createStreams(store, NO_SNAPSHOTS, runtime);
  const factory = new PayerFactory(change(streams), {
    clock,
    getProcessId: () => 'gateway-1',
    events: store,
    runtime: createTestRuntime(),
  });
  return { streams, payer: factory.forCaller({ accountId: ACCOUNT, keyId: null }) };
}

/** Loses the first response to a command of this type, and ends other holds of the account before the next attempt. */
function losingResponse(type: AccountCommand['type']): (streams: Streams) => Streams {
  let isLost = false;
  return (streams) => {
    const run: Streams['accounts']['run'] = async (id, command, cause) => {
      const outcome = await streams.accounts.run(id, command, cause);
      if (isLost || command.type !== type) return outcome;
      isLost = true;
      await endOtherHolds();
      throw new UnknownOutcomeError('the response was lost');
    };
    return { ...streams, accounts: { ...streams.accounts, run } };
  };
}

async function endOtherHolds(): Promise<void> {
  const { payer } = startProcess();
  await Promise.all(
    Array.from({ length: OTHER_ENDS }, async () => payer.settle(await payer.hold(createRequest()), charge, DELIVERED)),
  );
}

const createRequest = () => ({
  holdId: randomUUID(),
  query,
  minAmount: amount,
  maxAmount: amount,
  priceList: charge.priceList,
  lifetimeMs: 600_000,
});

async function countEnds({ holdId }: Hold): Promise<number> {
  let ends = 0;
  for await (const events of store.read(`account-${ACCOUNT}`, 0))
    ends += events
      .map(({ data }) => data as { holdId?: string; heldAt?: string })
      .filter((data) => data.heldAt && data.holdId === holdId).length;
  return ends;
}

beforeAll(async () => {
  database = await createMigratedDatabase();
  store = new PostgresEventStore({ connectionString: database.url });
  const at = clock.now();
  const key = { keyId: 'k', name: 'Default', hash: 'h', secret: { key: '', box: '' }, ...UNRESTRICTED_ACCESS };
  const credit = { creditId: 'c', method: 'm', amount: parseUsd('9'), bonus: parseUsd('0'), at };
  const { accounts } = startProcess().streams;
  const settings = { limit: null, resetPeriod: null, expireAt: null };
  await accounts.run(ACCOUNT, { type: 'OpenAccount', data: { key: { ...key, ...settings }, at } }, TEST_CAUSE);
  await accounts.run(ACCOUNT, { type: 'AddCredit', data: credit }, TEST_CAUSE);
});

afterAll(async () => {
  await store.close();
  await database.drop();
});

test('a settlement whose response was lost returns the charge, however many other holds have ended since', async () => {
  const { payer } = startProcess(losingResponse('SettleHold'));
  const hold = await payer.hold(createRequest());
  expect(await payer.settle(hold, charge, DELIVERED)).toBe(7n);
  expect(await countEnds(hold)).toBe(1);
});

test('a release whose response was lost succeeds, however many other holds have ended since', async () => {
  const { payer } = startProcess(losingResponse('ReleaseHold'));
  const hold = await payer.hold(createRequest());
  await payer.release(hold, { failure, attempts: [], absorbed: charge });
  expect(await countEnds(hold)).toBe(1);
});

test('a hold that ended otherwise, or that its account does not have, is not settled', async () => {
  const { payer } = startProcess();
  const hold = await payer.hold(createRequest());
  await expect(payer.settle({ ...hold, holdId: randomUUID() }, charge, DELIVERED)).rejects.toThrow(Rejection);
  await payer.release(hold, { failure, attempts: [] });
  await endOtherHolds();
  await expect(payer.settle(hold, charge, DELIVERED)).rejects.toThrow(Rejection);
  expect(await countEnds(hold)).toBe(1);
});
