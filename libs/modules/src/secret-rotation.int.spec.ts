/** Secrets are replaced while requests run: none fails before, during or after. */

import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { Secrets, toMasterKeyId } from '#application';
import { createTestDatabase, type TestAccount, TestWorld } from '#testing';

let resources: AsyncDisposableStack;
let directory: string;

beforeEach(async () => {
  resources = new AsyncDisposableStack();
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-secrets-'));
  resources.defer(() => rm(directory, { recursive: true }));
});

afterEach(() => resources.disposeAsync());

async function writeSecret(name: string, content: string): Promise<string> {
  const file = path.join(directory, name);
  await writeFile(file, `${content}\n`);
  return file;
}

/** Forwards requests to the sandbox if the header has one of the accepted values. */
async function startGuard(sandbox: string, header: string, accepted: Set<string>): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    if (!accepted.has(String(incoming.headers[header]))) return outgoing.writeHead(401).end('{}');
    const { method = '', url, headers } = incoming;
    const forwarded = request(`${sandbox}${url}`, { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    });
    return incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  resources.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Sends requests while the secrets are read again. @returns their statuses */
async function sendDuring(world: TestWorld, account: TestAccount): Promise<readonly number[]> {
  const requests = Array.from({ length: 3 }, () => world.sendChat(account, 'tokens=4'));
  await world.readSecretsAgain();
  const responses = await Promise.all([...requests, world.sendChat(account, 'tokens=4')]);
  return responses.map(({ status }) => status);
}

const ALL_OK = Array.from({ length: 4 }, () => 200);

test("a provider's API key is replaced", async () => {
  const accepted = new Set(['Bearer sk-before']);
  const world = await TestWorld.open(async (sandbox) => ({
    OPENAI_BASE_URL: `${await startGuard(sandbox, 'authorization', accepted)}/openai/v1`,
    OPENAI_API_KEY_FILE: await writeSecret('openai', 'sk-before'),
  }));
  resources.defer(() => world.close());
  const account = await world.createAccount(1);
  expect((await world.sendChat(account)).status).toBe(200);

  accepted.add('Bearer sk-after');
  await writeSecret('openai', 'sk-after');
  expect(await sendDuring(world, account)).toEqual(ALL_OK);
  accepted.delete('Bearer sk-before');

  expect((await world.sendChat(account)).status).toBe(200);
});

test('the macaroon of a Lightning node is replaced', async () => {
  const accepted = new Set(['01']);
  const world = await TestWorld.openWithSagas(async (sandbox) => ({
    LND_REST_URL: `${await startGuard(sandbox, 'grpc-metadata-macaroon', accepted)}/lnd`,
    LND_MACAROON_FILE: await writeSecret('lnd', '01'),
  }));
  resources.defer(() => world.close());
  const account = await world.createAccount(1);

  accepted.add('02');
  await writeSecret('lnd', '02');
  await world.readSecretsAgain();
  accepted.delete('01');

  await world.fund(account, 1);
  expect(Number(await world.fetchBalance(account))).toBeGreaterThan(1.9);
});

/** Creates a user who acts as the owner of the database. @returns its address */
async function createUser(admin: pg.Client, databaseUrl: string, name: string): Promise<string> {
  const url = new URL(databaseUrl);
  const user = `${name}_${randomUUID().replaceAll('-', '')}`;
  await admin.query(`create role ${user} login password '${decodeURIComponent(url.password)}' in role ${url.username}`);
  await admin.query(`alter role ${user} set role = ${url.username}`);
  resources.defer(() => admin.query(`drop role ${user}`).then(() => {}));
  return Object.assign(url, { username: user }).href;
}

test('the user of the database is replaced, first with two credentials at a time', async () => {
  const database = await createTestDatabase();
  const admin = new pg.Client({ connectionString: database.superuserUrl });
  await admin.connect();
  resources.defer(() => admin.end());
  const [before, after] = [
    await createUser(admin, database.url, 'before'),
    await createUser(admin, database.url, 'after'),
  ];
  const world = await TestWorld.openWithSagas({ DATABASE_URL_FILE: await writeSecret('database', before) });
  resources.defer(() => world.close());
  const account = await world.createAccount(1);
  const isUsed = async (address: string) => {
    const { username } = new URL(address);
    const { rowCount } = await admin.query('select from pg_stat_activity where usename = $1', [username]);
    return rowCount !== 0;
  };

  await writeSecret('database', `${before}\n${after}`);
  expect(await sendDuring(world, account)).toEqual(ALL_OK);
  await admin.query(`alter role ${new URL(before).username} nologin`);
  expect(await sendDuring(world, account)).toEqual(ALL_OK);
  await writeSecret('database', after);
  expect(await sendDuring(world, account)).toEqual(ALL_OK);

  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [
    new URL(before).username,
  ]);
  await world.waitUntil(async () => (await world.sendChat(account)).status === 200);
  expect([await isUsed(before), await isUsed(after)]).toEqual([false, true]);
});

test('another database is rejected while a process runs', async () => {
  const [database, other] = [await createTestDatabase(), await createTestDatabase()];
  const world = await TestWorld.open({ DATABASE_URL_FILE: await writeSecret('database', database.url) });
  resources.defer(() => world.close());

  await writeSecret('database', other.url);
  await world.readSecretsAgain();

  const admin = new pg.Client({ connectionString: other.superuserUrl });
  await admin.connect();
  const { rowCount } = await admin.query(
    "select from pg_stat_activity where datname = current_database() and application_name like 'countinghouse-%'",
  );
  await admin.end();
  expect(rowCount).toBe(0);
  expect((await world.post('/accounts/create', undefined)).status).toBe(201);
});

test('the master key is replaced in two steps', async () => {
  const [before, after] = [randomBytes(32), randomBytes(32)];
  const world = await TestWorld.open({ MASTER_KEY_FILE: await writeSecret('key', before.toString('hex')) });
  resources.defer(() => world.close());
  const account = await world.createAccount(1);

  await writeSecret('key', `${before.toString('hex')},${after.toString('hex')}`);
  expect(await sendDuring(world, account)).toEqual(ALL_OK);
  await writeSecret('key', `${after.toString('hex')},${before.toString('hex')}`);
  expect(await sendDuring(world, account)).toEqual(ALL_OK);

  const recent = await world.createAccount();
  expect((await world.sendChat(account)).status).toBe(200);
  expect((await world.post('/credits/balance', undefined, recent)).status).toBe(200);
  expect(world.getService(Secrets).keyId).toBe(toMasterKeyId(after));
  const { rows } = await world.getService(pg.Pool).query('select id from es.master_keys order by since');
  expect(rows).toEqual([{ id: toMasterKeyId(before) }, { id: toMasterKeyId(after) }]);
});

test('a key ring without a key that is in use is rejected', async () => {
  const [before, after] = [randomBytes(32), randomBytes(32)];
  const world = await TestWorld.open({ MASTER_KEY_FILE: await writeSecret('key', before.toString('hex')) });
  resources.defer(() => world.close());
  const account = await world.createAccount(1);

  await writeSecret('key', after.toString('hex'));

  expect(await sendDuring(world, account)).toEqual(ALL_OK);
  expect(world.getService(Secrets).keyId).toBe(toMasterKeyId(before));
});
