import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '#testing';
import { StartError } from './index.ts';
import { assertSessionPooling } from './sessions.ts';

let database: TestDatabase;
const servers: Server[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  for (const server of servers) server.close();
  await database.drop();
});

/**
 * Starts a proxy that changes chunks on their way to PostgreSQL. The first chunk is the startup message.
 * @returns the address of the proxy
 */
async function between(change: (piece: Buffer, isFirst: boolean) => Buffer): Promise<string> {
  const real = new URL(database.url);
  const server = createServer((client: Socket) => {
    const there = connect(Number(real.port), real.hostname);
    let isFirst = true;
    client.on('data', (piece) => {
      there.write(change(piece, isFirst));
      isFirst = false;
    });
    there.pipe(client);
    client.on('close', () => there.destroy()).on('error', () => {});
    there.on('close', () => client.destroy()).on('error', () => {});
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return Object.assign(new URL(real), { port: String((server.address() as AddressInfo).port) }).href;
}

/**
 * Removes the options from a startup message, as PgBouncer does with `ignore_startup_parameters = options`. Length and
 * version come before the pairs.
 */
function withoutOptions(message: Buffer): Buffer {
  const words = message.subarray(8, -1).toString('latin1').split('\0');
  const at = words.indexOf('options');
  if (at < 0) return message;
  words.splice(at, 2);
  const pairs = Buffer.from(`${words.join('\0')}\0`, 'latin1');
  const head = Buffer.from(message.subarray(0, 8));
  head.writeUInt32BE(head.length + pairs.length);
  return Buffer.concat([head, pairs]);
}

test('the check accepts PostgreSQL and a proxy that forwards everything', async () => {
  await assertSessionPooling(database.url);
  await assertSessionPooling(await between((piece) => piece));
});

test('the check rejects a pooler that ignores startup options, and says what to connect to', async () => {
  const pooler = await between((piece, isFirst) => (isFirst ? withoutOptions(piece) : piece));
  const refused = assertSessionPooling(pooler);
  await expect(refused).rejects.toBeInstanceOf(StartError);
  await expect(refused).rejects.toThrow(
    /^DATABASE_URL leads to a pooler .*startup options are ignored.*: connect to P/,
  );
});

test.each([
  ['listen countinghouse_', 'select             --', 'notifications do not arrive'],
  ['set countinghouse.set =', 'set countinghouse.no  =', 'settings do not outlive a transaction'],
])('the check rejects a pooler that drops "%s"', async (said, instead, why) => {
  const swallow = (piece: Buffer) => Buffer.from(piece.toString('latin1').replace(said, instead), 'latin1');
  await expect(assertSessionPooling(await between(swallow))).rejects.toThrow(why);
});

test('the check does not report a missing database as a pooler', async () => {
  const nowhere = Object.assign(new URL(database.url), { pathname: '/nowhere' }).href;
  await expect(assertSessionPooling(nowhere)).rejects.not.toBeInstanceOf(StartError);
});
