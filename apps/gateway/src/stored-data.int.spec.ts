/**
 * Checks that what an earlier build stored or gave to clients works with the current build. The fixture in
 * libs/testing/src/fixtures/stored-data has tables, files, a backup and the master key. It also has the requests,
 * responses, links and proofs that clients hold. A test fails if a change renames a stored name or a field, or changes
 * a digest, the purpose of a derived key, the order of properties, or a codec.
 *
 * Do not regenerate the fixture to make a test pass: the data of installations does not change with it. If the API
 * changes intentionally, change the response in clients.json. Regenerate the fixture only after a change that
 * intentionally makes older data unreadable:
 *
 * WRITE_STORED_DATA=1 npx jest apps/gateway/src/stored-data.int.spec.ts
 *
 * After a new version of an event, regenerate only the snapshot, because snapshots of earlier codecs are ignored:
 *
 * WRITE_SNAPSHOT=1 npx jest apps/gateway/src/stored-data.int.spec.ts
 */
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Secrets } from '#application';
import { verify } from '#audit';
import { StoreClock } from '#connectors';
import { type AccountEvent, accountCodec, accountDecider } from '#domain';
import { fold } from '#kernel';
import { createTestDatabase, createTestRuntime, type TestDatabase, TestWorld, Wiretap } from '#testing';
import { toVideoId } from '../../../libs/application/src/media/videos/request-video.ts';
import {
  type Exchange,
  isFirstSubmission,
  readClientData,
  resendRequest,
  STORED_DATA_DIR,
} from '../../../libs/testing/src/stored-data/fixture.ts';
import {
  loadTables,
  readStoredColumns,
  readStoredRows,
  readTable,
  withClient,
} from '../../../libs/testing/src/stored-data/tables.ts';
import { writeSnapshot, writeStoredData } from '../../../libs/testing/src/stored-data/write.ts';
import { createBackup } from '../../maintenance/src/create.ts';
import { listDatabases } from '../../maintenance/src/databases.ts';
import { restoreBackup } from '../../maintenance/src/restore.ts';

const HOUR_MS = 3_600_000;
const BACKUP = path.join(STORED_DATA_DIR, 'backup');

type Row = Readonly<Record<string, unknown>>;

if (process.env.WRITE_STORED_DATA === '1') await writeStoredData();
if (process.env.WRITE_SNAPSHOT === '1') await writeSnapshot();
const clients = readClientData();

let directory: string;
let database: TestDatabase;
/** A superuser. Its open connection holds the lease of videos, and represents the process that wrote the fixture. */
let root: pg.Client;
let tap: Wiretap;
let world: TestWorld;
/** Milliseconds that are added to the clock of the service. */
let aheadMs = 0;
const realTime = StoreClock.prototype.nowMs;

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-stored-data-'));
  await cp(path.join(STORED_DATA_DIR, 'files'), path.join(directory, 'files'), { recursive: true });
  [database, tap] = await Promise.all([createTestDatabase(), Wiretap.open()]);
  await loadTables(database);
  root = new pg.Client({ connectionString: database.superuserUrl });
  await root.connect();
  await root.query("update public.leases set ends_at = 'infinity', backend = pg_backend_pid() where name = 'videos'");
  await root.query("update public.processes set ends_at = 'infinity', backend = pg_backend_pid()"); // it has open holds
  const started = performance.now();
  StoreClock.prototype.nowMs = () => Math.floor(clients.time + performance.now() - started + aheadMs);
  world = await TestWorld.openWithSagas({
    DATABASE_URL: database.url,
    DATA_DIR: directory,
    MASTER_KEY: clients.masterKey,
    PUBLIC_BASE_URL: clients.publicBaseUrl,
    UNCLAIMED_AFTER_DAYS: '30',
    ...tap.settings,
  });
  tap.target = world.sandbox;
});
afterAll(async () => {
  await world.close();
  StoreClock.prototype.nowMs = realTime;
  await root.end();
  await Promise.all([tap.close(), database.drop(), rm(directory, { recursive: true })]);
});

async function select(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
  return (await root.query(sql, [...values])).rows;
}

/** Values of a column in the fixture. */
async function storedColumn(table: string, column: string): Promise<readonly string[]> {
  const at = (await readStoredColumns())[table]?.indexOf(column) ?? -1;
  const rows = (await readStoredRows(table)).trimEnd().split('\n');
  return rows.map((row) => row.split('\t')[at] ?? '');
}

async function lastStoredPosition(): Promise<number> {
  return Math.max(...(await storedColumn('es.events', 'position')).map(Number));
}

const ownHeaders = () => ({ authorization: `Bearer ${clients.account.apiKey}` });
const shown = ({ status, responseHeaders, responseBody }: Exchange) => ({ status, responseHeaders, responseBody });

/** Parses a snapshot and sorts its lists: states with the same entries are written in different orders. */
const parseSorted = (text: string): unknown =>
  JSON.parse(text, (_, value) => (Array.isArray(value) ? value.toSorted(compareJson) : value));
const compareJson = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

describe('the snapshot of an account', () => {
  const read = async () =>
    (await select('select *, state::text as text from es.snapshots where stream = $1', [clients.account.stream]))[0] ??
    {};

  test('has the version of the current codec, so it is not ignored', async () => {
    expect((await read()).version).toBe(`${accountCodec.version} signed 1`);
  });

  test('has the entries of the fold of its events, also when it is decoded and encoded', async () => {
    const { text, revision } = await read();
    const events = (await world.listEvents()).filter(({ stream }) => stream === clients.account.stream);
    const before = events.filter((event) => event.revision <= Number(revision)) as readonly AccountEvent[];
    const state = fold(accountDecider, accountDecider.getInitialState(), before);
    const restored = accountCodec.decode(JSON.parse(String(text)) as never);
    for (const each of [state, restored])
      expect(parseSorted(JSON.stringify(accountCodec.encode(each)))).toEqual(parseSorted(String(text)));
  });

  test('has keys, open holds and losses', async () => {
    const { keys, holds, losses } = (await read()).state as Record<string, readonly unknown[]>;
    expect([keys?.length, holds?.length]).toEqual([5, 4]);
    const amounts = { borne: expect.any(String), unheld: expect.any(String), charged: expect.any(String) };
    expect(losses).toEqual({ since: expect.any(String), ...amounts });
  });
});

describe('a read', () => {
  test('returns the same responses, items, links, files, keys, balance, history, top-ups and wallet', async () => {
    for (const exchange of clients.reads) {
      const { name, path: route } = exchange;
      const { status, responseBody } = await resendRequest(exchange, world.api);
      const expected = [name, route, exchange.status, withoutSignatures(exchange.responseBody)];
      expect([name, route, status, withoutAddedFields(withoutSignatures(responseBody))]).toEqual(expected);
    }
  });

  test('is accepted with each API key, and with the credit id', async () => {
    expect(clients.apiKeys.length).toBe(4);
    for (const apiKey of clients.apiKeys) {
      const headers = { authorization: `Bearer ${apiKey}` };
      expect((await world.send('POST', '/credits/balance', { headers })).status).toBe(200);
    }
    const { creditId } = clients.account;
    const { body } = await world.send('GET', '/keys?show_key=true', { headers: { 'x-credit-id': creditId } });
    expect(body.data.map((each: Record<string, unknown>) => each.api_key)).toEqual(clients.apiKeys);
  });

  test('decrypts the secrets in events', async () => {
    const secrets = new Secrets(createTestRuntime(), Buffer.from(clients.masterKey, 'hex'));
    const rows = await select(`select type, data from es.events where data::text like '%"box":%' order by position`);
    const opened = rows.map(({ type, data }) => [type, secrets.open((data as { secret: never }).secret)]);
    const secret = new URL(clients.walletUrl).searchParams.get('secret');
    expect(opened.filter(([type]) => type === 'WalletConnected')).toEqual([['WalletConnected', secret]]);
    const created = opened.flatMap(([type, text]) => (type === 'KeyCreated' ? [text] : []));
    expect(created).toEqual(expect.arrayContaining([...clients.apiKeys]));
    expect(await select('select id from es.master_keys')).toEqual([{ id: secrets.keyId }]);
  });
});

/** Removes the fields of the history, keys and videos that were added after the fixture was written. */
function withoutAddedFields(body: string): string {
  return body
    .replace(/"(input|output)_unit":("\w+"|null),/g, '')
    .replace(/"models":null,"blocked":false,"metadata":\{\},"dedupe_seconds":null,/g, '')
    .replace(/,"pagination":\{"page":1,"page_count":100,"total":\d+,"total_pages":\d+\}/, '')
    .replace('"object":"video",', '')
    .replace(/"created_at":\d+,"completed_at":.*"polling_url":"[^"]+",/, '')
    .replace(/"unsigned_urls":\["[^"]+"\],/, '')
    .replace(/,"usage":\{"cost":[\d.]+\}/, '');
}

/** Each response signs its links again, for one day. */
function withoutSignatures(body: string): string {
  return body.replace(/\?exp=\d+&sig=[\w-]{43}/g, '');
}

describe('a repeated request', () => {
  const names = clients.replays.map(({ name }) => name);
  const find = (name: string) => clients.replays.find((each) => each.name === name) as Exchange;

  test.each(names)('gets the saved response: %s', async (name) => {
    const repeated = await resendRequest(find(name), world.api);
    const expected = shown(find(name));
    // Whether caches may store a response does not depend on what was saved, and later builds expose more headers.
    const {
      'cache-control': _,
      'content-length': __,
      'access-control-expose-headers': exposed = '',
      ...savedHeaders
    } = expected.responseHeaders;
    const responseHeaders = Object.fromEntries(
      Object.entries(repeated.responseHeaders).filter(([each]) => each in savedHeaders),
    );
    const responseBody = withoutAddedFields(repeated.responseBody);
    expect({ ...shown({ ...repeated, responseBody }), responseHeaders }).toEqual({
      ...expected,
      responseHeaders: savedHeaders,
    });
    const exposedNow = repeated.responseHeaders['access-control-expose-headers']?.split(', ');
    expect(exposedNow).toEqual(expect.arrayContaining(exposed.split(', ')));
    expect(repeated.responseHeaders['cache-control']).toMatch(/^(private, )?no-store$/);
    expect(repeated.responseHeaders['idempotent-replayed']).toBe('true');
  });

  test.each(names)('is rejected with another body: %s', async (name) => {
    const exchange = find(name);
    const body = changed(exchange.body ?? '');
    const { status, responseBody } = await resendRequest(exchange, world.api, body);
    const isProof = !('idempotency-key' in exchange.headers);
    expect(status).toBe(isProof ? 402 : 409);
    expect(responseBody).toContain(isProof ? 'was made for another request' : 'was used with another request');
  });

  test('is rejected with its properties in another order, because the digest covers the text', async () => {
    const exchange = find('chat');
    const reversed = Object.fromEntries(Object.entries(JSON.parse(exchange.body ?? '{}')).reverse());
    expect((await resendRequest(exchange, world.api, JSON.stringify(reversed))).status).toBe(409);
  });

  test('adds no saved response, and is not sent to a provider', async () => {
    const keys = await select('select key from gateway.answers order by key');
    expect(keys.map(({ key }) => key).sort()).toEqual([...(await storedColumn('gateway.answers', 'key'))].sort());
    expect(tap.takeReceived()).toEqual([]);
  });
});

/** Another valid body of the same kind. */
function changed(body: string): string {
  return body
    .replace(/Hello|A coin|A harbour at dusk|tokens=8|At night/, (text) => text.replace(/.$/, '9'))
    .replace('"site"', '"page"')
    .replace('"amount":1', '"amount":3');
}

describe('a proof', () => {
  test.each(clients.proofs.map(({ name }) => name))('that was not used yet pays once: %s', async (name) => {
    const exchange = clients.proofs.find((each) => each.name === name) as Exchange;
    const first = await resendRequest(exchange, world.api);
    const second = await resendRequest(exchange, world.api);
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(first.responseHeaders['idempotent-replayed']).toBe(undefined);
    expect(second.responseHeaders['idempotent-replayed']).toBe('true');
    expect(second.responseBody).toBe(first.responseBody);
  });

  test('has its claim under the same key as earlier proofs', async () => {
    const rows = await select(
      "select distinct key from gateway.answers a where exists (select from es.events where stream = 'challenge-' || a.payer_id)",
    );
    expect(rows.length).toBe(1);
  });
});

/** Requests name the standard tier since release 1.3.0. */
function omitTier({ body, ...request }: ReturnType<typeof tap.takeReceived>[number]) {
  const { service_tier: _, ...rest } = body as Readonly<Record<string, unknown>>;
  return { ...request, body: rest };
}

describe('a conversation', () => {
  test.each(clients.continuations.map(({ exchange }) => exchange.name))(
    'continues, and its provider receives the same requests as from the earlier build: %s',
    async (name) => {
      const { exchange, upstream } = clients.continuations.find((each) => each.exchange.name === name) ?? {};
      tap.takeReceived();
      const { status, responseBody } = await resendRequest(exchange as Exchange, world.api);
      expect([status, status === 200 ? '' : responseBody]).toEqual([200, '']);
      expect(tap.takeReceived().map(omitTier)).toEqual(upstream);
    },
  );

  test('rejects a modified compaction, and accepts modified reasoning', async () => {
    for (const prefix of ['chat-reasoning.', 'chat-compaction.']) {
      const { exchange } = clients.continuations.find(({ exchange: { body } }) => body?.includes(prefix)) ?? {};
      const other = exchange?.body?.replace(prefix, 'chat-other.');
      expect((await resendRequest(exchange as Exchange, world.api, other)).status).toBe(
        prefix.includes('comp') ? 400 : 200,
      );
    }
  });
});

describe('rate limits', () => {
  test('are counted under the same keys', async () => {
    const before = await readCounters();
    for (const exchange of clients.counted) await resendRequest(exchange, world.api);
    const after = await readCounters();
    expect(Object.keys(after)).toEqual(Object.keys(before));
    expect(Object.keys(before)).toEqual([...(await storedColumn('limits.counted', 'key'))].sort());
    const same = Object.entries(before).filter(([key, points]) => Number(after[key]) <= points);
    expect(same).toEqual([]);
  });
});

async function readCounters(): Promise<Readonly<Record<string, number>>> {
  const rows = await select('select key, points from limits.counted order by key collate "C"');
  return Object.fromEntries(rows.map(({ key, points }) => [String(key), Number(points)]));
}

describe('a video that waits for its provider', () => {
  test('is not submitted while another process holds the lease', async () => {
    expect(tapped().length).toBe(0);
    expect(await select("select ends_at::text from public.leases where name = 'videos'")).toEqual([
      { ends_at: 'infinity' },
    ]);
  });

  test('is submitted with the same request, and its hold is settled', async () => {
    await root.query("update public.leases set ends_at = now() where name = 'videos'");
    const submitted: { readonly path: string }[] = [];
    await world.waitUntil(async () => {
      submitted.push(...tapped());
      return submitted.length >= clients.pendingVideos.length;
    });
    submitted.sort((one, other) => (one.path < other.path ? -1 : 1));
    expect(submitted).toEqual(clients.pendingVideos);
    const sql = `select type from es.events where position > $1 and type = 'HoldSettled'
                    and metadata->>'actor' = 'workflow:videos'`;
    const last = await lastStoredPosition();
    await world.waitUntil(async () => (await select(sql, [last])).length === 2); // the sandbox serves only two models
  });

  test('has an id that is derived from its request', async () => {
    const secrets = new Secrets(createTestRuntime(), Buffer.from(clients.masterKey, 'hex'));
    const rows = await select("select stream, metadata from es.events where type = 'VideoRequested'");
    const ids = rows.map(({ metadata }) => toVideoId(String((metadata as Row).$correlationId), secrets));
    expect(rows.map(({ stream }) => stream)).toEqual(ids.map((id) => `video-${id}`));
  });
});

/** Returns the first submissions of video jobs that providers have received since the last call. */
function tapped() {
  return tap.takeReceived().filter(isFirstSubmission);
}

describe('an open hold', () => {
  test('is listed, and expires', async () => {
    const find = () => select('select payer from books.holds where hold_id = $1', [clients.openHold]);
    expect(await find()).toEqual([{ payer: clients.account.stream }]);
    aheadMs += HOUR_MS;
    await world.waitUntil(async () => (await find()).length === 0);
    const sql = "select type, metadata->>'actor' as actor from es.events where data->>'holdId' = $1 order by position";
    const events = await select(sql, [clients.openHold]);
    expect(events.at(-1)).toEqual({ type: 'HoldExpired', actor: 'saga:hold-expiry' });
  });
});

describe('stored names', () => {
  test.each<[string, string, (readonly string[])?]>([
    ['public.leases', 'name'],
    ['es.checkpoints', 'reader', ['payment-claims']],
    ['books.checkpoints', 'projection', ['videos']],
    ['es.due', 'workflow', ['videos']],
    ['es.origin', 'first_fact'],
  ])('include none that the fixture lacks: %s', async (table, column, more = []) => {
    const known = new Set([...(await storedColumn(table, column)), ...more]);
    const rows = await select(`select distinct ${column} as name from ${table}`);
    expect(rows.map(({ name }) => name).filter((name) => !known.has(String(name)))).toEqual([]);
    expect(known.size).toBeGreaterThan(0);
  });

  test('are used by the current build: each lease has a higher token, and each checkpoint has advanced', async () => {
    const names = await storedColumn('public.leases', 'name');
    const drawn = await storedColumn('public.leases', 'drawn');
    for (const [at, name] of names.entries()) {
      const later = await select('select drawn > $2 as later from public.leases where name = $1', [name, drawn[at]]);
      expect([name, later]).toEqual([name, [{ later: true }]]);
    }
    const end = await lastStoredPosition();
    await world.waitUntil(async () => {
      const sql = `select reader as name from es.checkpoints where position <= $1
                   union all select projection from books.checkpoints where position <= $1`;
      return (await select(sql, [end])).length === 0;
    });
  });
});

test('writes events with only known actors, and with exactly the known metadata fields', async () => {
  const end = await lastStoredPosition();
  const sql = `select distinct regexp_replace(metadata->>'actor', '[0-9a-f-]{24,36}$', '<id>') as actor
                 from es.events where position <= $1`;
  const actors = (await select(sql, [end])).map(({ actor }) => String(actor)).sort();
  expect(actors).toEqual([
    'account:<id>',
    'anybody',
    'catalogue',
    'challenge:<id>',
    'key:<id>',
    'ledger',
    'vendor:fal',
    'workflow:topups',
    'workflow:videos',
  ]);
  const later = await select(sql.replace('<= $1', '> $1'), [end]);
  const known = new Set([...actors, 'saga:hold-expiry']);
  expect(later.map(({ actor }) => actor).filter((actor) => !known.has(String(actor)))).toEqual([]);
  expect(later.length).toBeGreaterThan(4);
  const fields = `select distinct json_object_keys(metadata) as name from es.events where position > $1 order by 1`;
  expect((await select(fields, [end])).map(({ name }) => name)).toEqual([
    '$causationId',
    '$correlationId',
    'actor',
    'version',
  ]);
});

test('has no drift in the ledger', async () => {
  const lines: string[] = [];
  await world.waitUntil(async () => {
    const sql = 'select min(position) >= (select max(position) from es.events) as read from books.checkpoints';
    return (await select(sql))[0]?.read === true;
  });
  await verify(world.foundation, (line) => lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
});

test('starts a gateway from the snapshot, without the events before it', async () => {
  const { stream } = clients.account;
  const find = () => select('select revision, last, state::text, mac from es.snapshots where stream = $1', [stream]);
  const before = await find();
  await root.query('set session_replication_role = replica'); // without the trigger that makes events immutable
  await root.query("update es.events set data = '{}' where stream = $1 and revision < $2", [
    stream,
    before[0]?.revision,
  ]);
  const api = await world.addGateway();
  const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'Hello' }] };
  const response = await world.send('POST', '/v1/chat/completions', { body, headers: ownHeaders(), api });
  expect([response.status, response.status === 200 ? '' : response.text]).toEqual([200, '']);
  expect(await find()).toEqual(before);
});

test('finds saved responses on a gateway that uses another master key for new secrets', async () => {
  const api = await world.addGateway({ masterKeys: [randomBytes(32).toString('hex'), clients.masterKey] });
  for (const exchange of clients.replays) {
    const { status, responseBody } = await resendRequest(exchange, api);
    const expected = [exchange.name, exchange.status, withoutSignatures(exchange.responseBody)];
    expect([exchange.name, status, withoutAddedFields(withoutSignatures(responseBody))]).toEqual(expected);
  }
});

describe('a backup', () => {
  let target: TestDatabase;
  beforeAll(async () => {
    target = await createTestDatabase();
  });
  afterAll(() => target.drop());

  test('is restored to the rows of its point in time, and a new backup has the same format', async () => {
    const manifest = await restoreBackup(listDatabases(target.url, undefined), BACKUP);
    const columns = await readStoredColumns();
    await withClient(target.url, async (client) => {
      for (const { name } of manifest.tables)
        expect(await readTable(client, name, columns[name] ?? [])).toBe(await readStoredRows(name));
    });
    const again = path.join(directory, 'backup');
    await createBackup(listDatabases(target.url, undefined), again, 'PostgreSQL');
    // The time, the compressed bytes of this version of zlib, and the migrations may differ.
    const form = async (each: string) =>
      (await readFile(path.join(each, 'manifest.json'), 'utf8'))
        .replace(/"(createdAt|sha256)": "[^"]+"/g, '"$1": ""')
        .replace(/("migrations": \[)[^\]]+/, '$1');
    expect(await form(again)).toBe(await form(BACKUP));
  });
});
