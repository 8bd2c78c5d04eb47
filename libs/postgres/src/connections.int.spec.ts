import { readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { connectClient, openPool } from '#postgres';
import { createTestDatabase } from '#testing';

const root = path.resolve(import.meta.dirname, '../../..');
/** Exceptions: this library, tests, the start of the embedded server, and code that only parses an address. */
const OWN =
  /^libs\/(postgres|testing)\/|^libs\/foundation\/src\/(embedded-postgres\/server|unsafe-settings)\.ts$|\.spec\.ts$/;

test('only libs/postgres opens connections of apps and libs, except in tests and to start the embedded server', () => {
  const files = ['apps', 'libs'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const opening = files
    .filter((file) => file.endsWith('.ts') && !OWN.test(file))
    .filter((file) => {
      return /new (pg\.)?(Pool|Client)\(\{?\s*(connectionString|\.\.\.|host)/.test(
        readFileSync(path.join(root, file), 'utf8'),
      );
    });
  expect(opening).toEqual([]);
});

test('a pool rejects a query if the server does not respond', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const connectionString = `postgres://a:b@127.0.0.1:${(silent.address() as AddressInfo).port}/c`;
  const pool = openPool({ connectionString, name: 'test', connectTimeoutMs: 20 });
  await expect(pool.query('select 1')).rejects.toThrow('timeout');
  await pool.end();
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test('a client applies its limits to its connection, which ends if a transaction stays idle', async () => {
  const database = await createTestDatabase();
  const limits = { queryTimeoutMs: 100_000, idleTransactionTimeoutMs: 20 };
  const client = await connectClient({
    connectionString: database.url,
    name: 'test',
    ...limits,
    options: '-c TimeZone=UTC',
  });
  const shown = async (name: string) => Object.values((await client.query(`show ${name}`)).rows[0])[0];
  expect([await shown('statement_timeout'), await shown('tcp_keepalives_idle')]).toEqual(['90s', '5']);
  expect([await shown('tcp_user_timeout'), await shown('TimeZone')]).toEqual(['15000', 'UTC']);
  const ended = new Promise((resolve) => client.once('end', () => resolve('ended')));
  await client.query('begin');
  expect(await ended).toBe('ended');
  await database.drop();
});
