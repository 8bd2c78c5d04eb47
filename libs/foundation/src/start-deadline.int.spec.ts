import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, describe, expect, test } from '@jest/globals';
import { StoreUnavailableError } from '#kernel';
import { connectClient, openPool } from '#postgres';
import { useFakeTime } from '../../testing/src/use-fake-time.ts';
import { isTransient, NotReadyError, StartDeadline } from './start-deadline.ts';
import { StartError } from './start-error.ts';

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
  findError(() => connectClient({ connectionString, name: 'test', ...limits }));

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
  ['a deadlock with another start', { code: '40P01', severity: 'ERROR' }],
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
  await expect(new StartDeadline(1_000, () => {}).waitFor('it', attempt)).rejects.toBe(error);
  expect([error instanceof Error, attempts]).toEqual([true, 1]);
});

test('a step that waits ends when the start ends, and is not reported any more', async () => {
  const sentences: string[] = [];
  const deadline = new StartDeadline(60_000, (sentence) => void sentences.push(sentence));
  let attempts = 0;
  const waiting = deadline.waitFor('it', async () => {
    attempts++;
    throw new NotReadyError('it sleeps');
  });
  deadline.end();
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  expect([attempts, sentences.length]).toEqual([1, 1]);
});

describe('a start', () => {
  const getTime = useFakeTime();
  const TIMEOUT_MS = 60_000;

  /** A deadline, with the sentences that it has reported. */
  function createDeadline() {
    const sentences: string[] = [];
    return { deadline: new StartDeadline(TIMEOUT_MS, (sentence) => void sentences.push(sentence)), sentences };
  }

  /** A dependency that is late until `appear`. */
  function createDependency(reason: Error = new NotReadyError('it sleeps')) {
    let isThere = false;
    return {
      appear: () => {
        isThere = true;
      },
      attempt: async () => {
        if (isThere) return 'here';
        throw reason;
      },
    };
  }

  test('says at once and then every 5 s for what it waits, and continues when it is there', async () => {
    const { deadline, sentences } = createDeadline();
    const database = createDependency();
    const step = deadline.waitFor('the database', database.attempt);
    await getTime().advance(12_000);
    expect(sentences).toEqual([
      'the start is waiting for the database (it sleeps); 60 s remain',
      'the start is waiting for the database (it sleeps); 55 s remain',
      'the start is waiting for the database (it sleeps); 50 s remain',
    ]);
    database.appear();
    await getTime().advance(1_000);
    expect(await step).toBe('here');
    await getTime().advance(30_000);
    expect(sentences).toHaveLength(3);
  });

  test('says nothing if nothing is late', async () => {
    const { deadline, sentences } = createDeadline();
    expect(await deadline.waitFor('the database', async () => 'here')).toBe('here');
    await getTime().advance(30_000);
    expect(sentences).toEqual([]);
  });

  test('says for what it waits also while one attempt takes long, and why if the attempt explains it', async () => {
    const { deadline, sentences } = createDeadline();
    const { promise, resolve } = Promise.withResolvers<void>();
    const step = deadline.waitFor('the database', ({ explain }) => {
      const delayed = getTime().delay(6_000);
      return delayed.then(() => explain('another process migrates it')).then(() => promise);
    });
    await getTime().advance(6_000);
    expect(sentences).toEqual([
      'the start is waiting for the database; 55 s remain',
      'the start is waiting for the database (another process migrates it); 54 s remain',
    ]);
    resolve();
    await step;
  });

  test('ends at one deadline for all its steps, with one sentence that names all that were late', async () => {
    const { deadline } = createDeadline();
    const database = createDependency();
    const first = deadline.waitFor('the database', database.attempt);
    await getTime().advance(TIMEOUT_MS - 10_000);
    database.appear();
    await getTime().advance(1_000);
    await first;
    const later = [
      deadline.waitFor('the event store', createDependency().attempt),
      deadline.waitFor('the files', createDependency(new NotReadyError('the bucket is full')).attempt),
    ];
    const firstFailure = Promise.race(later).catch((error: unknown) => error);
    const end = Promise.allSettled(later);
    await getTime().advance(10_000);
    await end;
    expect(await firstFailure).toBeInstanceOf(StartError);
    expect(((await firstFailure) as StartError).message).toBe(
      'The start ended after 60 s (START_TIMEOUT_MS) because it was still waiting for the event store (it sleeps) and the files (the bucket is full).',
    );
  });

  test('that found no free connection names max_connections', async () => {
    const { deadline } = createDeadline();
    const full = Object.assign(new Error('sorry, too many clients already'), { code: '53300', severity: 'FATAL' });
    for (const reason of [full, new StoreUnavailableError('no', { cause: full })]) {
      const step = deadline.waitFor('the database', createDependency(reason).attempt).catch((error) => error.message);
      await getTime().advance(TIMEOUT_MS + 1_000);
      expect(await step).toMatch(
        /\(sorry, too many clients already: max_connections of PostgreSQL, .* is reached\)\.$/,
      );
    }
  });
});
