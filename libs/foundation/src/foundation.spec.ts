import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ActionRequiredError } from '#kernel';
import { createSelfSignedCertificate, createTestDatabase, FakeEventStoreDb, type TestDatabase } from '#testing';
import { createLog, type Log, openFoundation, readSettings } from './index.ts';

let database: TestDatabase;
const opened = new AsyncDisposableStack();
beforeAll(async () => {
  database = await createTestDatabase();
  opened.defer(() => database.drop());
});
afterAll(() => opened.disposeAsync());

/** The error of a server that recovers after a crash. */
function createStartingUpError(): Buffer {
  const fields = ['SFATAL', 'VFATAL', 'C57P03', 'Mthe database system is starting up'].map((field) => `${field}\0`);
  const body = Buffer.from(`${fields.join('')}\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** Opens a way to PostgreSQL on which the first connections find that it is starting up. */
async function openStartingDatabase(rejectedConnections: number) {
  let count = 0;
  const server = createServer((client: Socket) => {
    client.on('error', () => {});
    count++;
    if (count <= rejectedConnections) return void client.once('data', () => client.end(createStartingUpError()));
    const there = connect(Number(new URL(database.url).port), '127.0.0.1');
    client.pipe(there).pipe(client);
    client.on('close', () => there.destroy());
    there.on('close', () => client.destroy()).on('error', () => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  opened.defer(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: Object.assign(new URL(database.url), { port }).href, countConnections: () => count };
}

const open = (url: string) => openFoundation(readSettings({ DATABASE_URL: url }), createLog('silent'));

test('a process starts once PostgreSQL, which is starting up, accepts connections', async () => {
  const { url, countConnections } = await openStartingDatabase(3);

  const foundation = await open(url);

  opened.defer(() => foundation.close());
  expect(await foundation.store.readLastPosition()).toBe(-1n);
  expect(countConnections()).toBeGreaterThan(3);
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
  const { url, countConnections } = await openStartingDatabase(0);

  await expect(open(Object.assign(new URL(url), { password: 'wrong' }).href)).rejects.toThrow(
    /^The database in DATABASE_URL cannot be prepared: password authentication failed/,
  );

  expect(countConnections()).toBe(1);
});

test('a process whose certificate of the database is missing does not start, without another attempt', async () => {
  const { url, countConnections } = await openStartingDatabase(0);

  await expect(open(`${url}?sslmode=verify-full&sslrootcert=/does/not/exist`)).rejects.toThrow(
    /^The database in DATABASE_URL cannot be prepared: ENOENT: .*\/does\/not\/exist/,
  );

  expect(countConnections()).toBe(0);
});

const RETRYING = 'the event store is not available yet; retrying';

/** Collects the warnings of a process. `retrying` resolves when it warns that it tries again to reach the event store. */
function collectWarnings() {
  const warnings: string[] = [];
  const { promise: retrying, resolve } = Promise.withResolvers<void>();
  const warn = (_: object, problem: string) => {
    warnings.push(problem);
    if (problem === RETRYING) resolve();
  };
  return { log: { ...createLog('silent'), warn } as unknown as Log, warnings, retrying };
}

const settingsWith = (eventStoreUrl: string) =>
  readSettings({ DATABASE_URL: database.url, EVENTSTORE_URL: eventStoreUrl });

test('a process starts once EventStoreDB, which is not running at first, responds', async () => {
  const server = await FakeEventStoreDb.start();
  opened.defer(() => server.stop());
  server.stop();
  const { log, retrying } = collectWarnings();

  const starting = openFoundation(settingsWith(server.connectionString), log);
  await Promise.race([retrying, starting]);
  await server.restart();
  const foundation = await starting;

  opened.defer(() => foundation.close());
  expect(await foundation.store.readLastPosition()).toBe(-1n);
});

test('a process does not start if EventStoreDB does not respond until the deadline', async () => {
  const starting = openFoundation(settingsWith('esdb://admin:secret@127.0.0.1:1?tls=false'), createLog('silent'), 0);

  await expect(starting).rejects.toThrow(/^The event store at 127\.0\.0\.1:1 does not respond\.$/);
});

test('a process that does not trust the certificate of EventStoreDB does not start, without another attempt', async () => {
  const server = await FakeEventStoreDb.start({ certificate: createSelfSignedCertificate() });
  opened.defer(() => server.stop());
  const { log, warnings } = collectWarnings();

  await expect(openFoundation(settingsWith(server.connectionString), log)).rejects.toThrow(
    /^The event store at 127\.0\.0\.1:\d+ has a certificate that this process does not accept; check EVENTSTORE_URL\.$/,
  );

  expect(warnings).not.toContain(RETRYING);
});
