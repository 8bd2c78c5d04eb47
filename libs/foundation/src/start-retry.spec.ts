import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, expect, test } from '@jest/globals';
import { StoreUnavailableError } from '#kernel';
import { createClient, openPool } from '#postgres';
import { StartError } from './start-error.ts';
import { isTransient, retryUntilStartDeadline } from './start-retry.ts';

const servers: Server[] = [];
const sockets = new Set<Socket>();
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});

/** Returns the connection string of a server that treats each connection like this. */
async function listen(serve: (socket: Socket) => void, parameters = ''): Promise<string> {
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    serve(socket);
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `postgres://a:b@127.0.0.1:${(server.address() as AddressInfo).port}/c${parameters}`;
}

async function findError(attempt: () => Promise<unknown>): Promise<unknown> {
  try {
    return await attempt();
  } catch (error) {
    return error;
  }
}

const connect = (connectionString: string, limits: { readonly connectTimeoutMs?: number } = {}) =>
  findError(() => createClient({ connectionString, name: 'test', ...limits }).connect());

async function connectPool(connectionString: string, limits: { readonly connectTimeoutMs?: number }): Promise<unknown> {
  const pool = openPool({ connectionString, name: 'test', ...limits });
  const error = await findError(() => pool.query('select 1'));
  await pool.end();
  return error;
}

test.each<[string, (socket: Socket) => void, { readonly connectTimeoutMs?: number }]>([
  ['ends each connection', (socket) => void socket.destroy(), {}],
  ['does not respond', () => {}, { connectTimeoutMs: 50 }],
])('a database that %s may be available later', async (_, serve, limits) => {
  const url = await listen(serve);
  expect(isTransient(await connect(url, limits))).toBe(true);
  expect(isTransient(await connectPool(url, limits))).toBe(true);
});

test('a database that refuses the connection may be available later', async () => {
  expect(isTransient(await connect('postgres://a:b@127.0.0.1:1/c'))).toBe(true);
});

test.each([
  ['a hostname of a container that is not running', { code: 'ENOTFOUND', syscall: 'getaddrinfo' }],
  ['a name server that is not available', { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }],
  ['a network that is not up', { code: 'ENETUNREACH', syscall: 'connect' }],
  ['a reset connection', { code: 'ECONNRESET', syscall: 'read' }],
  ['a socket file of a server that is not running', { code: 'ENOENT', syscall: 'connect' }],
  ['a server that is starting up', { code: '57P03', severity: 'FATAL' }],
  ['too many connections', { code: '53300', severity: 'FATAL' }],
])('%s may be different later', (_, details) => {
  expect(isTransient(Object.assign(new Error('no'), details))).toBe(true);
});

test('an event store that does not respond may do so later', () => {
  expect(isTransient(new StoreUnavailableError('no'))).toBe(true);
});

test.each<[string, () => Promise<unknown>]>([
  [
    'a path of a certificate that does not exist',
    () => connect('postgres://a:b@127.0.0.1:1/c?sslmode=verify-full&sslrootcert=/does/not/exist'),
  ],
  [
    'a server without the requested encryption',
    async () =>
      connect(await listen((socket) => void socket.once('data', () => socket.end('N')), '?sslmode=verify-full')),
  ],
  ['an invalid address', () => connect('postgres://a:b@127.0.0.1:99999/c')],
  ['a mistake in the program', async () => new TypeError('x is not a function')],
  ['an invalid password', async () => Object.assign(new Error('no'), { code: '28P01', severity: 'FATAL' })],
  ['a missing database', async () => Object.assign(new Error('no'), { code: '3D000', severity: 'FATAL' })],
  ['an invalid certificate', async () => Object.assign(new Error('no'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })],
  [
    'a right that the role lacks in the event store',
    async () =>
      new StoreUnavailableError('no', { cause: Object.assign(new Error(), { code: '42501', severity: 'ERROR' }) }),
  ],
  ['a sentence for the operator', async () => new StartError('No.')],
])('%s ends the start at the first attempt', async (_, produce) => {
  const error = await produce();
  let attempts = 0;
  const attempt = async () => {
    attempts++;
    throw error;
  };
  await expect(retryUntilStartDeadline(attempt, () => {}, 1_000)).rejects.toBe(error);
  expect([error instanceof Error, attempts]).toEqual([true, 1]);
});
