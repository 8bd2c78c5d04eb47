import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ActionRequiredError } from '#kernel';
import {
  createSelfSignedCertificate,
  createTestDatabase,
  DelayedDatabase,
  FakeEventStoreDb,
  type TestDatabase,
} from '#testing';
import { createLog, type Log, openFoundation, readSettings } from './index.ts';

let database: TestDatabase;
const opened = new AsyncDisposableStack();
beforeAll(async () => {
  database = await createTestDatabase();
  opened.defer(() => database.drop());
});
afterAll(() => opened.disposeAsync());

/** Opens a way to PostgreSQL on which the first connections find that it is starting up. */
async function openStartingDatabase(rejectedConnections: number): Promise<DelayedDatabase> {
  const late = await DelayedDatabase.open(database.url, (connection) => connection <= rejectedConnections);
  opened.defer(() => late.close());
  return late;
}

const open = (url: string) => openFoundation(readSettings({ DATABASE_URL: url }), createLog('silent'));

test('a process starts once PostgreSQL, which is starting up, accepts connections', async () => {
  const late = await openStartingDatabase(3);

  const foundation = await open(late.url);

  opened.defer(() => foundation.close());
  expect(await foundation.store.readLastPosition()).toBe(-1n);
  expect(late.connections).toBeGreaterThan(3);
});

test('a process logs a reported problem as an error if an operator must act, else as a warning', async () => {
  const lines: string[] = [];
  const write = (level: string) => (_: object, problem: string) => void lines.push(`${level}: ${problem}`);
  const log = { warn: write('warn'), error: write('error') } as unknown as Log;
  const foundation = await openFoundation(readSettings({ DATABASE_URL: database.url }), log);
  opened.defer(() => foundation.close());

  foundation.runtime.reportError('the node is away', new Error('refused'));
  foundation.runtime.reportError('a payment is contested', new ActionRequiredError('see the list'));

  expect(lines).toEqual(['warn: the node is away', 'error: a payment is contested']);
});

test('a process whose password is invalid does not start, without another attempt', async () => {
  const late = await openStartingDatabase(0);

  await expect(open(Object.assign(new URL(late.url), { password: 'wrong' }).href)).rejects.toThrow(
    /^The database in DATABASE_URL cannot be prepared: password authentication failed/,
  );

  expect(late.connections).toBe(1);
});

test('a process whose certificate of the database is missing does not start, without another attempt', async () => {
  const late = await openStartingDatabase(0);

  await expect(open(`${late.url}?sslmode=verify-full&sslrootcert=/does/not/exist`)).rejects.toThrow(
    /^The database in DATABASE_URL cannot be prepared: ENOENT: .*\/does\/not\/exist/,
  );

  expect(late.connections).toBe(0);
});

const WAITING = /^the start is waiting for the event store at /;

/** Collects the warnings of a process. `waiting` resolves when it warns that it waits for the event store. */
function collectWarnings() {
  const warnings: string[] = [];
  const { promise: waiting, resolve } = Promise.withResolvers<void>();
  const warn = (_: object, problem: string) => {
    warnings.push(problem);
    if (WAITING.test(problem)) resolve();
  };
  return { log: { ...createLog('silent'), warn } as unknown as Log, warnings, waiting };
}

const settingsWith = (eventStoreUrl: string, startTimeoutMs?: string) =>
  readSettings({ DATABASE_URL: database.url, EVENTSTORE_URL: eventStoreUrl, START_TIMEOUT_MS: startTimeoutMs });

test('a process starts once EventStoreDB, which is not running at first, responds', async () => {
  const server = await FakeEventStoreDb.start();
  opened.defer(() => server.stop());
  server.stop();
  const { log, waiting } = collectWarnings();

  const starting = openFoundation(settingsWith(server.connectionString), log);
  await Promise.race([waiting, starting]);
  await server.restart();
  const foundation = await starting;

  opened.defer(() => foundation.close());
  expect(await foundation.store.readLastPosition()).toBe(-1n);
});

test('a process does not start if EventStoreDB does not respond until the deadline', async () => {
  const starting = openFoundation(settingsWith('esdb://admin:secret@127.0.0.1:1?tls=false', '0'), createLog('silent'));

  await expect(starting).rejects.toThrow(
    /^The start ended after 0 s \(START_TIMEOUT_MS\) because it was still waiting for the event store at 127\.0\.0\.1:1 \([^)]+\)\.$/,
  );
});

test('a process that does not trust the certificate of EventStoreDB does not start, without another attempt', async () => {
  const server = await FakeEventStoreDb.start({ certificate: await createSelfSignedCertificate() });
  opened.defer(() => server.stop());
  const { log, warnings } = collectWarnings();

  await expect(openFoundation(settingsWith(server.connectionString), log)).rejects.toThrow(
    /^The event store at 127\.0\.0\.1:\d+ has a certificate that this process does not accept; check EVENTSTORE_URL\.$/,
  );

  expect(warnings.filter((warning) => WAITING.test(warning))).toEqual([]);
});
