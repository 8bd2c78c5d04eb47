/**
 * The event store stops accepting writes while requests are running. PostgreSQL rejects each append as for a full disk.
 * The responses arrive while it does. account-payer.spec.ts checks their time limit exactly.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { Streams } from '#application';
import type { EventStore } from '#kernel';
import { extendDelay, extendTimeouts, type TestAccount, type TestResponse, TestWorld } from '#testing';

const FUNDS = 1.05;
/** The provider generates until the disk is full. */
const LATENCY_MS = 1_500;
const LATENCY = `latency=${LATENCY_MS} tokens=3`;
const CHUNK_DELAY_MS = 300;
/** How long a response waits for the event store. */
const STORE_LIMIT_MS = 8_000;

let world: TestWorld;
let database: pg.Client;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
  await database.query(`create function es.full() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`);
});
beforeEach(async () => {
  account = await world.createAccount(FUNDS);
});
afterEach(freeDisk);
afterAll(async () => {
  await database.end();
  await world.close();
});

async function fillDisk(): Promise<void> {
  await database.query('create trigger full_disk before insert on es.events for each row execute function es.full()');
}

async function freeDisk(): Promise<void> {
  await database.query('drop trigger if exists full_disk on es.events');
}

const types = async () => (await world.listEvents(account)).slice(3).map(({ type }) => type);
const count = async (type: string) => (await types()).filter((each) => each === type).length;
const waitForHolds = (holds: number) => world.waitUntil(async () => (await count('FundsHeld')) === holds);
const balance = async () => (await world.post('/credits/balance', undefined, account)).body;

type Append = EventStore['append'];

/** Replaces `append` of the event store while `work` runs. */
async function withAppend<T>(replace: (append: Append) => Append, work: () => Promise<T>): Promise<T> {
  const store = world.foundation.store as { append: Append };
  const { append } = store;
  store.append = replace(append.bind(store));
  try {
    return await work();
  } finally {
    store.append = append;
  }
}

/** Fills the disk and then lets requests end. Ends the limit of their responses once all of them wait for the store. */
async function outlast<T>(holds: number, letEnd: () => void, responses: Promise<T>): Promise<T> {
  const { accounts } = world.getService(Streams);
  const run = jest.spyOn(accounts, 'run');
  const limit = extendTimeouts(STORE_LIMIT_MS);
  const countEnding = () => {
    const ended = run.mock.calls.flatMap(([, { type, data }]) =>
      type === 'SettleHold' || type === 'ReleaseHold' ? [data.holdId] : [],
    );
    return new Set(ended).size;
  };
  try {
    await fillDisk();
    letEnd();
    await world.waitUntil(() => countEnding() === holds);
    limit.end();
    return await responses;
  } finally {
    limit.end();
    run.mockRestore();
  }
}

/** Whether the response is the documented 503. */
function expectUnavailable({ status, headers, body }: TestResponse): void {
  expect([status, body.error.type]).toEqual([503, 'unavailable']);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
}

describe('a full disk', () => {
  test('gives requests in flight 503 while it lasts, and what was not delivered is never charged', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': 'k' };
    const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: `[[sandbox ${LATENCY}]]` }] };
    const ask = () => world.send('POST', '/v1/chat/completions', { headers, body });
    const generation = extendDelay(LATENCY_MS);
    const sent = [world.sendChat(account, LATENCY), ask(), world.sendChat(account, 'fault=500')];
    await waitForHolds(3);
    for (const response of await outlast(3, generation.end, Promise.all(sent))) expectUnavailable(response);
    await freeDisk();
    await world.waitUntil(async () => {
      const { balance: available, held_usd } = await balance();
      return available === FUNDS && held_usd === 0;
    });
    // A charge that was sent before the client got 503 can still be stored when the disk has space.
    const [absorbed, charged, reversed] = [
      await count('ChargeAbsorbed'),
      await count('HoldSettled'),
      await count('ChargeReversed'),
    ];
    expect([absorbed + reversed, reversed]).toEqual([2, charged]);
    const sumPrices = async () =>
      (await world.get('/queries/history', account)).body.data.reduce(
        (sum: number, row: { price_in_usd: number }) => sum + row.price_in_usd,
        0,
      );
    await world.waitUntil(async () => (await sumPrices()) === 0);
    // The client repeats the request with its key: it is served, and charged once.
    const repeated = await ask();
    expect([repeated.status, await count('HoldSettled')]).toEqual([200, charged + 1]);
  });

  test('ends streams while it lasts, and charges what was delivered once the disk has space', async () => {
    const stream = { stream: true };
    const generation = extendDelay(LATENCY_MS);
    const pauses = extendDelay(CHUNK_DELAY_MS);
    const begun = world.sendChat(account, `chunk_delay=${CHUNK_DELAY_MS} chunks=8 tokens=8`, stream);
    const silent = world.sendChat(account, LATENCY, stream);
    await waitForHolds(2);
    await pauses.started;
    const letEnd = () => {
      pauses.end();
      generation.end();
    };
    const [ended, other] = await outlast(2, letEnd, Promise.all([begun, silent]));
    expect(ended.status).toBe(200);
    expect(ended.events.at(-1)).toMatchObject({ error: { type: 'unavailable' } });
    await freeDisk();
    await world.waitUntil(async () => (await balance()).held_usd === 0);
    expect(await count('HoldSettled')).toBe(other.status === 503 ? 1 : 2);
  });
});

describe('a charge that is stored, but confirmed too late', () => {
  test('is reversed, for the account, for its key and in the history', async () => {
    const limit = extendTimeouts(STORE_LIMIT_MS);
    const lost = Promise.withResolvers<void>();
    const loseConfirmation =
      (append: Append): Append =>
      async (...args) => {
        const head = await append(...args);
        if (!args[2].some(({ type }) => type === 'HoldSettled')) return head;
        limit.end();
        await lost.promise; // stored, but there is no response
        return head;
      };
    await withAppend(loseConfirmation, async () => {
      expectUnavailable(await world.sendChat(account, 'tokens=3'));
      expect(await types()).toEqual(['FundsHeld', 'HoldSettled']);
    }).finally(lost.resolve);
    await world.waitUntil(async () => (await count('ChargeReversed')) === 1);
    expect(await types()).toEqual(['FundsHeld', 'HoldSettled', 'ChargeReversed']);
    await world.waitUntil(async () => (await world.get('/queries/history', account)).body.data.length === 2);
    const { data } = (await world.get('/queries/history', account)).body;
    expect(data.reduce((sum: number, row: { price_in_usd: number }) => sum + row.price_in_usd, 0)).toBe(0);
    expect(await balance()).toMatchObject({ balance: FUNDS, held_usd: 0 });
    const { body } = await world.send('GET', '/keys', { headers: { 'x-credit-id': account.creditId } });
    expect(body.data).toMatchObject([{ current_period_usage_usd: 0, total_usage_all_time_usd: 0 }]);
  });
});

describe('a charge that fails because of a programming error', () => {
  /** Sends a chat whose charge cannot be appended, or not confirmed. Counts the attempts to append it. */
  async function sendWithFailingCharge(isStored: boolean) {
    let charges = 0;
    const failCharge =
      (append: Append): Append =>
      async (...args) => {
        if (!args[2].some(({ type }) => type === 'HoldSettled')) return append(...args);
        charges++;
        if (isStored) await append(...args);
        throw new TypeError('x is not a function');
      };
    return withAppend(failCharge, async () => {
      const response = await world.sendChat(account, 'tokens=3');
      return { response, charges };
    });
  }

  test.each([
    ['was not stored', false, ['FundsHeld', 'HoldExpired', 'ChargeAbsorbed']],
    ['was stored', true, ['FundsHeld', 'HoldSettled', 'ChargeReversed']],
  ])('is 500 at once and costs the account nothing, if the charge %s', async (_, isStored, expectedTypes) => {
    const { response, charges } = await sendWithFailingCharge(isStored);
    expect(charges).toBe(1);
    expect(response.status).toBe(500);
    expect(response.body).toMatchObject({
      status: 'error',
      statusCode: 500,
      message: 'Internal server error',
      error: { type: 'server_error', code: 'server_error' },
    });
    await world.waitUntil(async () => (await types()).length === 3);
    expect(await types()).toEqual(expectedTypes);
    expect(await balance()).toMatchObject({ balance: FUNDS, held_usd: 0 });
  });
});
