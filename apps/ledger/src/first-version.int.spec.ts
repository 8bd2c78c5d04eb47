/**
 * Tests with events that the first version wrote, before events had versions: three accounts with keys and top-ups, and
 * successful and failed chats, searches, Responses and embeddings. `books.json` has sums of that version's read models:
 * trial balance, number of journal lines, available balances and usage of keys.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createStreams } from '#application';
import { verify } from '#audit';
import { type DomainEvent, type KeyCreated, type TopupEvent, topupDecider, topupWorkflow } from '#domain';
import { eventStoreMigrations, PostgresSnapshots } from '#eventstore';
import { migrate } from '#foundation';
import { createRootCause, fold, formatUsd, type StoredEvent, toPicoUsd } from '#kernel';
import { projections, READ_MODEL_CONNECTION_OPTIONS } from '#projections';
import { createTestDatabase, type TestDatabase, TestWorld } from '#testing';

const FOLDER = path.resolve(import.meta.dirname, '../../../libs/testing/src/fixtures/first-version');
/** Master key of the simulated installation that wrote the events. */
const MASTER_KEY = '355c7696295965bb756a2d313c2054d81212148ad6504f32cf893cc0a6fa0fe4';
const ACCOUNT = { creditId: '2a7a2b1d-ef14-4cdf-8e39-798bc57077fb', apiKey: 'sk-GxagOGlgVqbHtJyay6SUha' };
const ACCOUNT_STREAM = `account-${ACCOUNT.creditId}`;

interface Stored {
  readonly position: string;
  readonly stream: string;
  readonly revision: string;
  readonly id: string;
  readonly type: string;
  readonly data: { readonly [name: string]: unknown };
  readonly metadata: object;
  readonly recordedAt: string;
}

const stored: readonly Stored[] = readFileSync(path.join(FOLDER, 'facts.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line));
const books = JSON.parse(readFileSync(path.join(FOLDER, 'books.json'), 'utf8'));
/** Position up to which all read models have applied events. */
const ALL_APPLIED = `select min(position) from books.checkpoints having count(*) = ${projections.length}`;
const last = BigInt(stored.at(-1)?.position ?? 0);

let database: TestDatabase;
let pool: pg.Pool;
let world: TestWorld;
beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, eventStoreMigrations);
  pool = new pg.Pool({ connectionString: database.url, max: 1, options: READ_MODEL_CONNECTION_OPTIONS });
  await insert(pool);
  world = await TestWorld.openWithSagas({ DATABASE_URL: database.url, MASTER_KEY });
  await applied(ALL_APPLIED, last);
});
afterAll(async () => {
  await world.close();
  await pool.end();
  await database.drop();
});

/** Inserts the events as the old build wrote them, with a snapshot in which an account has a much higher balance. */
async function insert(to: pg.Pool): Promise<void> {
  const columns = 'position bigint, stream text, revision bigint, id uuid, type text, data json, metadata json';
  await to.query(
    `insert into es.events (position, stream, revision, id, type, data, metadata, recorded_at) overriding system value
     select * from json_to_recordset($1) as e(${columns}, "recordedAt" timestamptz)`,
    [JSON.stringify(stored)],
  );
  await to.query("select setval(pg_get_serial_sequence('es.events', 'position'), $1)", [String(last)]);
  const { revision, position } = stored.findLast(({ stream }) => stream === ACCOUNT_STREAM) as Stored;
  const none = { holds: [], keys: [], credits: [], resolved: [[], []], expired: [[], []] };
  const state = { opened: true, available: '77000000000000', held: '0', ...none };
  await to.query('insert into es.snapshots values ($1, $2, $3, $4, $5)', [
    ACCOUNT_STREAM,
    '2',
    revision,
    position,
    state,
  ]);
}

async function one(sql: string): Promise<string> {
  return String(Object.values((await pool.query(sql)).rows[0] ?? {})[0]);
}

/** Waits until the position that `sql` selects as `min` is at least `position`. */
async function applied(sql: string, position = last): Promise<void> {
  await world.waitUntil(async () => BigInt((await pool.query(sql)).rows[0]?.min ?? -1n) >= position);
}

async function verified(): Promise<readonly string[]> {
  const lines: string[] = [];
  await verify(world.foundation, (line) => lines.push(line));
  return lines;
}

test('the events result in the trial balance, account balances and key usage of the first version', async () => {
  const { rows } = await pool.query('select account, sum(amount)::text as amount from journal group by account');
  expect(Object.fromEntries(rows.map(({ account, amount }) => [account, amount]))).toEqual(books.trialBalance);
  expect(await one('select count(*) from journal')).toBe(String(books.journalLines));
  const balances = (await pool.query('select account_id, available, held from balances')).rows;
  expect(Object.fromEntries(balances.map((row) => [row.account_id, row.available]))).toEqual(books.balances);
  const keys = (await pool.query('select key_id, used_in_all from keys')).rows;
  expect(Object.fromEntries(keys.map((row) => [row.key_id, row.used_in_all]))).toEqual(books.usedOfKeys);
});

test('verify prints drift 0', async () => {
  const lines = await verified();
  expect(Number.parseInt(lines[0] ?? '', 10)).toBeGreaterThanOrEqual(stored.length);
  expect(lines.at(-1)).toBe('drift 0');
});

test('the top-up workflow claims the payments of the first version, and adds no other events', async () => {
  await applied("select position as min from es.checkpoints where reader = 'topups'");
  await world.waitUntil(async () => (await one('select count(*) from es.due where at <= now()')) === '0');
  const added = (await world.listEvents()).slice(stored.length).filter(({ type }) => type !== 'PriceListPublished');
  expect(added.map(({ type }) => type)).toEqual(
    stored.flatMap(({ type }) => (type === 'PaymentReceived' ? ['PaymentClaimed'] : [])),
  );
});

test('a payment without its TopupCredited event is not credited again, although credit ids have changed', async () => {
  const snapshots = new PostgresSnapshots(pool, [Buffer.alloc(32)]);
  const { accounts } = createStreams(world.foundation.store, snapshots, world.foundation.runtime);
  const facts = (await world.listEvents()) as readonly StoredEvent<DomainEvent>[];
  const ofTopups = Map.groupBy(facts.filter(isOfTopup), ({ stream }) => stream);
  const credits = [...ofTopups.values()].flatMap((past) => {
    const unmarked = past.filter(({ type }) => type !== 'TopupCredited');
    const topup = fold(topupDecider, topupDecider.getInitialState(), unmarked);
    const { steps } = topupWorkflow.plan(topup, new Date().toISOString());
    return steps.flatMap((step) => (step.step === 'send' && step.command.target === 'account' ? [step.command] : []));
  });
  expect(credits.length).toBe(stored.filter(({ type }) => type === 'CreditAdded').length);
  for (const { id, command } of credits) {
    expect((await accounts.run(id, command, createRootCause('test', id))).events).toEqual([]);
  }
});

function isOfTopup(fact: StoredEvent<DomainEvent>): fact is StoredEvent<TopupEvent> {
  return fact.stream.startsWith('topup-');
}

describe('an account of the first version', () => {
  const own = { 'x-credit-id': ACCOUNT.creditId };

  test('has its keys, history and top-ups', async () => {
    const keys = (await world.send('GET', '/keys?show_key=true', { headers: own })).body.data;
    expect(keys.map(({ name }: { name: string }) => name)).toEqual(['Default', 'ci', 'site', 'soon']);
    expect(keys[0].api_key).toBe(ACCOUNT.apiKey);
    const history = (await world.send('GET', '/queries/history?page_count=20', { headers: own })).body;
    expect(history.pagination.total).toBeGreaterThan(90);
    const paid = stored.filter(({ type, data }) => type === 'PaymentReceived' && data.accountId === ACCOUNT.creditId);
    expect(paid.length).toBe(2);
    for (const { stream } of paid)
      expect((await world.get(`/topup/status/${stream.slice('topup-'.length)}`)).body.status).toBe('Settled');
  });

  test('is served with its key, from its events and not from the old snapshot', async () => {
    const before = toPicoUsd(BigInt(books.balances[ACCOUNT.creditId]));
    expect(await world.fetchBalance(ACCOUNT)).toBe(formatUsd(before));
    expect((await world.sendChat(ACCOUNT)).status).toBe(200);
    const [held, settled] = (await world.listEvents(ACCOUNT)).slice(-2);
    expect([held?.type, settled?.type]).toEqual(['FundsHeld', 'HoldSettled']);
    const charged = settled?.type === 'HoldSettled' ? BigInt(settled.data.charged) : 0n;
    expect(await world.fetchBalance(ACCOUNT)).toBe(formatUsd(toPicoUsd(before - charged)));
  });

  test('can be topped up, with drift 0 afterwards', async () => {
    await world.fund(ACCOUNT, 1);
    await applied(ALL_APPLIED, (await world.listEvents()).at(-1)?.position);
    expect((await verified()).at(-1)).toBe('drift 0');
  });
});

describe('the master key of the first version', () => {
  const other = randomBytes(32).toString('hex');
  const own = { 'x-credit-id': ACCOUNT.creditId };

  test('is known from the events, so that a gateway with only another key does not start', async () => {
    const first = stored.find(({ type }) => type === 'KeyCreated')?.data as Pick<KeyCreated['data'], 'secret'>;
    expect(await one('select id from es.master_keys')).toBe(first.secret.key);
    await expect(world.startGateway({ masterKeys: [other] })).rejects.toThrow(`fingerprint ${first.secret.key}`);
    expect(await one('select count(*) from es.master_keys')).toBe('1');
  });

  test('can be replaced while gateways run: those with both keys share API keys and idempotency keys', async () => {
    const widened = await world.addGateway({ masterKeys: [MASTER_KEY, other] });
    const switched = await world.addGateway({ masterKeys: [other, MASTER_KEY] });
    expect(await one('select count(*) from es.master_keys')).toBe('2');
    for (const [name, maker, reader] of [['a', widened, switched] as const, ['b', switched, widened] as const]) {
      const made = await world.send('POST', '/keys', { body: { name }, headers: own, api: maker });
      const apiKey = made.body.data.api_key as string;
      const shown = await world.send('GET', '/keys?show_key=true', { headers: own, api: reader });
      const all = shown.body.data.map((key: { api_key: string }) => key.api_key);
      expect(all).toEqual(expect.arrayContaining([ACCOUNT.apiKey, apiKey]));
      const headers = { authorization: `Bearer ${apiKey}`, 'idempotency-key': `of ${name}` };
      const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'Hello' }] };
      const asked = (api: string) => world.send('POST', '/v1/chat/completions', { body, headers, api });
      const before = (await world.listEvents(ACCOUNT)).length;
      expect((await asked(maker)).status).toBe(200);
      expect((await asked(reader)).headers.get('idempotent-replayed')).toBe('true');
      expect((await world.listEvents(ACCOUNT)).length - before).toBe(2);
    }
    await expect(world.startGateway({ masterKeys: [MASTER_KEY] })).rejects.toThrow(
      'restore the missing key, alone or after a new',
    );
  });
});
