/** A gateway that dies, or is only considered dead: its request is charged at most once. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createStreams, EXPIRY_MARGIN_MS } from '#application';
import type { AccountCommand } from '#domain';
import { money, NO_SNAPSHOTS } from '#kernel';
import { KeyedRequests, TEST_CAUSE, type TestResponse } from '#testing';

let requests: KeyedRequests;
beforeAll(async () => {
  requests = await KeyedRequests.open();
});
beforeEach(() => requests.reset());
afterAll(() => requests.close());

const ask: KeyedRequests['send'] = (...asked) => requests.send(...asked);
const replayed = ({ headers }: TestResponse) => headers.get('idempotent-replayed');
const refused = ({ status, body }: TestResponse) => [status, body.error.type];
const IN_PROGRESS = [409, 'idempotency_in_progress'];
const LOST = [409, 'idempotency_answer_lost'];
const NEVER_MS = 600_000;
/** The name of the gateway that dies. */
const DEAD = 'gateway-dead';

/** Returns a function that runs commands on the account like another gateway. */
function anotherWriter() {
  const { store, runtime } = requests.world.foundation;
  const { accounts } = createStreams(store, NO_SNAPSHOTS, runtime);
  return (command: AccountCommand) => accounts.run(requests.world.getAccountId(requests.account), command, TEST_CAUSE);
}

function hold(holdId: string, expiresInMs: number): AccountCommand {
  const at = new Date().toISOString();
  const query = {
    model: 'openai/gpt-5-mini',
    type: 'chat_completion',
    source: 'api',
    online: false,
    free: false,
  } as const;
  const amount = { minAmount: money.parseUsd('0.1'), maxAmount: money.parseUsd('0.1') };
  const expiresAt = new Date(Date.now() + expiresInMs).toISOString();
  return { type: 'HoldFunds', data: { holdId, keyId: null, query, ...amount, owner: DEAD, expiresAt, at } };
}

const lapse = () => requests.updateClaims('leased_until = now()');

/** Simulates a gateway that dies before it has held money: copies the claim of another account for the same request. */
async function dieClaiming(): Promise<string> {
  const other = await requests.world.createAccount(1.05);
  await ask('tokens=3', { headers: { authorization: `Bearer ${other.apiKey}` } });
  await requests.world.bill.clear();
  await requests.database.query(
    `insert into gateway.answers
       (payer_id, key, request, request_id, revision, owner, leased_until, expires_at, held)
     select $1, key, request, gen_random_uuid(), 2, gen_random_uuid(), now() + interval '10 s', expires_at, false
       from gateway.answers where payer_id = $2`,
    [requests.world.getAccountId(requests.account), requests.world.getAccountId(other)],
  );
  return (await requests.listClaims())[0].request_id;
}

async function dieBeforeKeeping(): Promise<string> {
  await ask();
  await requests.updateClaims('answer = null');
  return (await requests.listClaims())[0].request_id;
}

async function dieUnconfirmed(): Promise<string> {
  const requestId = await dieClaiming();
  await anotherWriter()(hold(requestId, NEVER_MS));
  return requestId;
}

const dieHolding = (expiresInMs: number) => async () => {
  const holdId = randomUUID();
  await dieClaiming();
  await anotherWriter()(hold(holdId, expiresInMs));
  await requests.updateClaims('held = true, request_id = $1', [holdId]);
  return holdId;
};

const ONCE = ['FundsHeld', 'HoldSettled'];

/** How the gateway dies; then, after its lease has expired: the outcome of a retry, all events and the billed calls. */
describe.each<[string, () => Promise<string>, readonly unknown[] | 'served', readonly string[], billed: number]>([
  ['before it has held money', dieClaiming, 'served', ONCE, 1],
  ['with an unconfirmed hold', dieUnconfirmed, 'served', ['FundsHeld', ...ONCE], 1],
  ['with an open hold', dieHolding(NEVER_MS), IN_PROGRESS, ['FundsHeld'], 0],
  ['with an expired hold', dieHolding(-EXPIRY_MARGIN_MS - 1), 'served', ['FundsHeld', 'HoldExpired', ...ONCE], 1],
  ['between the charge and saving its response', dieBeforeKeeping, LOST, ONCE, 1],
])('a gateway that dies %s', (_, die, outcome, facts, billed) => {
  let dead: string;
  beforeEach(async () => {
    dead = await die();
  });

  if (outcome !== LOST && !facts.includes('HoldExpired')) {
    test('blocks the key of its request while its lease is valid', async () => {
      const before = await requests.getEventTypes();
      const { headers, ...answer } = await ask();
      expect(refused({ headers, ...answer })).toEqual(IN_PROGRESS);
      expect(headers.get('retry-after')).toBe('2');
      expect(await requests.getEventTypes()).toEqual(before);
    });
  }

  test(`leaves a request whose retry gets ${outcome === 'served' ? 'a new response' : outcome[1]}`, async () => {
    await lapse();
    const retry = await ask('tokens=3', { api: requests.apis[1] });
    const again = await ask();
    if (outcome === 'served') {
      expect([retry.status, replayed(retry)]).toEqual([200, null]);
      expect(retry.headers.get('x-request-id')).not.toBe(dead);
      expect([again.text, replayed(again)]).toEqual([retry.text, 'true']);
    } else {
      for (const each of [retry, again]) expect(refused(each)).toEqual(outcome);
      expect(retry.headers.get('x-should-retry')).toBe(outcome === LOST ? 'false' : null);
      expect(retry.headers.get('retry-after')).toBe(outcome === LOST ? null : '2');
      if (outcome === LOST) expect(retry.body.message).toContain('was charged, but its response was lost');
    }
    expect(await requests.getEventTypes()).toEqual(facts);
    expect(await requests.countBilledCalls()).toBe(billed);
  });
});

describe('a gateway that died', () => {
  test('no longer blocks the key of its request once its hold has ended, even if its lease is valid', async () => {
    await dieHolding(NEVER_MS)();
    expect(refused(await ask())).toEqual(IN_PROGRESS);
    const at = new Date(Date.now() + 1_000).toISOString();
    await anotherWriter()({ type: 'AbandonHolds', data: { owner: DEAD, before: at, at } });
    const asked = Array.from({ length: 6 }, (_, i) => ask('tokens=3', { api: requests.apis[i % 2] ?? '' }));
    const served = (await Promise.all(asked)).filter(({ status }) => status === 200);
    expect(served.filter((each) => replayed(each) === null)).toHaveLength(1);
    expect(await requests.getEventTypes()).toEqual(['FundsHeld', 'HoldExpired', ...ONCE]);
    expect(await requests.countBilledCalls()).toBe(1);
  });

  test('with an unconfirmed hold leaves a request that is charged once, even after that hold has expired', async () => {
    await dieUnconfirmed();
    await lapse();
    const served = await ask();
    const at = new Date(Date.now() + 2 * NEVER_MS).toISOString();
    await anotherWriter()({ type: 'ExpireHolds', data: { before: at, at } });
    expect((await ask()).text).toBe(served.text);
    expect((await requests.getEventTypes()).filter((type) => type === 'HoldSettled')).toHaveLength(1);
  });

  test('leaves a charge that is found in the events, even after more holds than the account retains', async () => {
    await dieBeforeKeeping();
    await lapse();
    const run = anotherWriter();
    const why = { errorCode: 'upstream_error', reason: '', attempts: [], at: new Date().toISOString() };
    const others = Array.from({ length: 1_100 }, (_, i) => `other ${i}`).flatMap((holdId) => [
      run(hold(holdId, NEVER_MS)),
      run({ type: 'ReleaseHold', data: { holdId, ...why } }),
    ]);
    await Promise.all(others);
    expect(refused(await ask())).toEqual(LOST);
    expect((await requests.getEventTypes()).filter((type) => type === 'HoldSettled')).toHaveLength(1);
  });

  test('leaves its request to one of many retries', async () => {
    await dieClaiming();
    await lapse();
    const asked = Array.from({ length: 10 }, (_, i) => ask('tokens=3', { api: requests.apis[i % 2] ?? '' }));
    const served = (await Promise.all(asked)).filter(({ status }) => status === 200);
    expect(served.filter((each) => replayed(each) === null)).toHaveLength(1);
    expect([await requests.getEventTypes(), await requests.countBilledCalls()]).toEqual([ONCE, 1]);
  });
});

describe('a running gateway', () => {
  /** A second connection, which does not wait for the locks of a test. */
  let pool: pg.Pool;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: requests.world.databaseUrl, max: 1 });
  });
  afterAll(() => pool.end());

  /** Runs `asked` while no event can be appended. */
  const locked = async (asked: () => Promise<void>) => {
    await requests.database.query('begin; lock table es.events in exclusive mode');
    try {
      await asked();
    } finally {
      await requests.database.query('commit');
    }
  };
  const waiting = (claims: number) =>
    requests.world.waitUntil(async () => {
      const sql = `select count(*)::int as waiting from pg_locks where relation = 'es.events'::regclass and not granted`;
      return (await pool.query(sql)).rows[0].waiting >= claims;
    });
  const lapsed = () => requests.updateClaims('leased_until = now()', [], pool);

  test('that is considered dead while placing a hold releases the hold and leaves the request to another', async () => {
    let first: Promise<TestResponse> | undefined;
    let second: Promise<TestResponse> | undefined;
    await locked(async () => {
      first = ask('tokens=3', { api: requests.apis[0] });
      await waiting(1);
      await lapsed();
      second = ask('tokens=3', { api: requests.apis[1] });
      await waiting(2);
    });
    const [late, heir] = await Promise.all([first as Promise<TestResponse>, second as Promise<TestResponse>]);
    expect([heir.status, replayed(heir)]).toEqual([200, null]);
    expect(refused(late)).toEqual(IN_PROGRESS);
    expect(late.headers.get('retry-after')).toBe('2');
    const ends = (await requests.getEventTypes()).filter((type) => type !== 'FundsHeld').toSorted();
    expect(ends).toEqual(['HoldReleased', 'HoldSettled']);
    expect(await requests.countBilledCalls()).toBe(1);
    expect((await ask()).text).toBe(heir.text);
    const { data } = (await requests.world.get('/queries/history', requests.account)).body;
    expect(data.map((each: { error_code: string | null }) => each.error_code).toSorted()).toEqual(['not_served', null]);
  });

  test('that is considered dead, but is not replaced, serves its request as usual', async () => {
    let first: Promise<TestResponse> | undefined;
    await locked(async () => {
      first = ask();
      await waiting(1);
      await lapsed();
    });
    const answer = await (first as Promise<TestResponse>);
    expect(answer.status).toBe(200);
    expect((await ask()).text).toBe(answer.text);
    expect([await requests.getEventTypes(), await requests.countBilledCalls()]).toEqual([ONCE, 1]);
  });

  test('that cannot confirm its claim serves nothing and charges nothing, and its request can be retried', async () => {
    await requests.withFullDisk('held', async () => expect(refused(await ask())).toEqual([503, 'unavailable']));
    expect([await requests.getEventTypes(), await requests.countBilledCalls()]).toEqual([
      ['FundsHeld', 'HoldReleased'],
      0,
    ]);
    expect((await ask()).status).toBe(200);
  });
});
