import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type EmbeddedPostgres, StartError, startEmbeddedPostgres } from '#foundation';
import { waitUntil } from '#testing';
import { findUnprivilegedUser, locateBinaries } from './binaries.ts';
import { readOrCreatePassword } from './cluster.ts';
import { IN_USE_LOCK_ID, joinOrStartServer, stopServer, toConnectionUrl } from './server.ts';

/** No test here is about durability after a power failure. */
const FAST = ['fsync=off', 'shared_buffers=16MB'];
const BUILT = path.resolve(
  import.meta.dirname,
  '../../../../dist/libs/foundation/src/embedded-postgres/embedded-postgres.js',
);

let dataDir: string;
let opened: EmbeddedPostgres[] = [];
let processes: ChildProcess[] = [];
beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-embedded-'));
});
afterEach(async () => {
  for (const each of processes) each.kill('SIGKILL');
  for (const each of opened) await each.close();
  [processes, opened] = [[], []];
  await waitUntil(async () => (await server()) === undefined);
});
afterAll(() => rm(dataDir, { recursive: true }));

async function start(): Promise<EmbeddedPostgres> {
  const started = await startEmbeddedPostgres(dataDir, FAST);
  opened.push(started);
  return started;
}

/** Starts or joins the server in a separate process, which runs until it is killed. */
async function startInProcess(): Promise<{ readonly url: string; kill(): Promise<void> }> {
  const program = `const { startEmbeddedPostgres } = await import(${JSON.stringify(BUILT)});
    const { url } = await startEmbeddedPostgres(${JSON.stringify(dataDir)}, ${JSON.stringify(FAST)});
    process.stdout.write(url);
    setInterval(() => {}, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  processes.push(child);
  const [url] = await once(child.stdout, 'data');
  const kill = async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  return { url: String(url), kill };
}

async function ask(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return Object.values((await client.query(sql)).rows[0] ?? {})[0];
  } finally {
    await client.end();
  }
}

const pidFile = () => path.join(dataDir, 'postgres/postmaster.pid');

/** Returns the id of the process in the pid file if it is running. */
async function server(): Promise<number | undefined> {
  const pid = Number((await readFile(pidFile(), 'utf8').catch(() => '')).split('\n')[0]);
  if (pid <= 0) return undefined;
  try {
    process.kill(pid, 0);
    return pid;
  } catch {
    return undefined;
  }
}

describe('the embedded database', () => {
  test('is shared by two callers that start it at the same time in an empty directory', async () => {
    const [first, second] = await Promise.all([start(), start()]);
    expect(second?.url).toBe(first?.url);
    expect(await ask(first?.url ?? '', 'select current_database()')).toBe('countinghouse');
  });

  test('is used with a database role that is not a superuser', async () => {
    const { url } = await start();
    expect(await ask(url, 'select rolsuper from pg_roles where rolname = current_user')).toBe(false);
  });

  test('runs until its last user closes it', async () => {
    const [first, second] = [await start(), await start()];
    await first.close();
    expect(second.isRunning()).toBe(true);
    expect(await ask(second.url, 'select 1')).toBe(1);
    await second.close();
    expect(second.isRunning()).toBe(false);
  });

  test('stops if all users close it at the same time', async () => {
    const all = await Promise.all([start(), start(), start()]);
    await Promise.all(all.map((each) => each.close()));
    expect(await server()).toBeUndefined();
  });

  test('is available to a user that starts it while the last one closes it', async () => {
    const first = await start();
    const [, second] = await Promise.all([first.close(), start()]);
    expect(await ask(second.url, 'select 1')).toBe(1);
  });

  test('preserves data over a restart', async () => {
    const first = await start();
    await ask(first.url, 'create table kept as select 42 as answer');
    await first.close();
    expect(await ask((await start()).url, 'select answer from kept')).toBe(42);
  });

  test('is shared by processes, and continues after one of them was killed', async () => {
    const other = await startInProcess();
    const here = await start();
    expect(here.url).toBe(other.url);
    await other.kill();
    expect(await ask(here.url, 'select 1')).toBe(1);
  });

  test('is found again after the only process that used it was killed', async () => {
    const other = await startInProcess();
    await other.kill();
    expect(await server()).toBeDefined();
    const here = await start();
    expect(here.url).toBe(other.url);
    await here.close();
    expect(await server()).toBeUndefined();
  });

  test('stops although the connection of a killed process ends only while its last user closes it', async () => {
    const last = await start();
    const port = Number(new URL(last.url).port);
    const password = await readOrCreatePassword(dataDir);
    const connectionString = toConnectionUrl({ pid: 0, port }, password, 'postgres', 'postgres');
    const killed = new pg.Client({ connectionString });
    await killed.connect();
    await killed.query('select pg_advisory_lock_shared($1)', [IN_USE_LOCK_ID]);
    let isClosed = false;
    const closing = last.close().then(() => {
      isClosed = true;
    });
    await waitUntil(
      async () => isClosed || (await killed.query('select from pg_locks where not granted')).rowCount === 1,
    );
    await killed.end();
    await closing;
    expect(await server()).toBeUndefined();
  });

  test('starts a separate server for a copied directory with the pid file of the original', async () => {
    await (await start()).close();
    const copied = `${dataDir} copied`;
    await promisify(execFile)('cp', ['-a', dataDir, copied]); // unlike Node, it preserves the owner
    const original = await start();
    await copyFile(pidFile(), path.join(copied, 'postgres/postmaster.pid'));
    const copy = await startEmbeddedPostgres(copied, FAST);
    expect(new URL(copy.url).port).not.toBe(new URL(original.url).port);
    await copy.close();
    expect(original.isRunning()).toBe(true);
    await rm(copied, { recursive: true });
  });

  test('starts, and stops after an error, even if its command line cannot be read at first', async () => {
    const user = findUnprivilegedUser();
    const located = await locateBinaries(user);
    const forAllUsers = await mkdtemp(path.join(tmpdir(), 'countinghouse-late-'));
    await chmod(forAllUsers, 0o755);
    const postgres = path.join(forAllUsers, 'postgres');
    const program = `#!/bin/sh\nexec /bin/sh -c "sleep 0.1; exec '${located.postgres}' $*"\n`;
    await writeFile(postgres, program, { mode: 0o755 });
    await (await start()).close();
    const password = await readOrCreatePassword(dataDir);
    const dir = path.join(dataDir, 'postgres');
    const cluster = { dir, binaries: { ...located, postgres }, user, password };
    const { presence, ...started } = await joinOrStartServer(cluster, FAST, 0);
    await presence.end();
    await stopServer(started);
    const withOtherPassword = { ...cluster, password: 'other' };
    await expect(joinOrStartServer(withOtherPassword, FAST, 0)).rejects.toThrow('it rejects the password');
    expect(await server()).toBeUndefined();
    await rm(forAllUsers, { recursive: true });
  });

  test('reports that it was killed, and starts again despite its stale pid file', async () => {
    const first = await start();
    process.kill((await server()) as number, 'SIGKILL');
    await waitUntil(async () => !first.isRunning());
    const second = await start();
    expect(await ask(second.url, 'select 1')).toBe(1);
  });

  test('starts even if the pid in a stale pid file now belongs to another process', async () => {
    await (await start()).close();
    const epoch = Math.floor(Date.now() / 1000);
    await writeFile(
      pidFile(),
      `${process.pid}\n/proc/self/cwd\n${epoch}\n1\n\n127.0.0.1\n        1         1\nready\n`,
    );
    expect(await ask((await start()).url, 'select 1')).toBe(1);
  });
});

describe('a data directory that cannot be used', () => {
  /** Starts without a part of the data directory. */
  async function without(part: string): Promise<unknown> {
    const aside = path.join(dataDir, `aside ${path.basename(part)}`);
    await rename(path.join(dataDir, part), aside);
    try {
      return await start().catch((error) => error);
    } finally {
      await rm(path.join(dataDir, part), { recursive: true, force: true });
      await rename(aside, path.join(dataDir, part));
    }
  }
  const sentence = expect.stringMatching(/^[^\n]+\.$/);

  test('is reported if it is a file', async () => {
    const file = path.join(dataDir, 'a file');
    await writeFile(file, '');
    const error = await startEmbeddedPostgres(file).catch((each) => each);
    expect(error).toBeInstanceOf(StartError);
    expect(error.message).toBe(
      `The data directory ${file} cannot be used: EEXIST: file already exists, mkdir '${file}'.`,
    );
  });

  test('is reported if another directory has the name of the database directory', async () => {
    const other = path.join(dataDir, 'other');
    await mkdir(path.join(other, 'postgres'), { recursive: true });
    const message = `${path.join(other, 'postgres')} exists and is not a PostgreSQL data directory.`;
    await expect(startEmbeddedPostgres(other)).rejects.toEqual(new StartError(message));
  });

  test.each([
    ['the server does not start', 'postgres/global', /does not start: .*global/],
    ['the server rejects every client', 'postgres/base', /cannot be used: database "postgres" does not exist/],
    ['the password differs', 'postgres.password', /cannot be used: it rejects the password in .*postgres\.password/],
  ])('is reported in one sentence if %s, and no server remains', async (_, part, reason) => {
    const error = await without(part);
    expect(error).toBeInstanceOf(StartError);
    expect(error).toMatchObject({ message: sentence });
    expect(error).toMatchObject({ message: expect.stringContaining(path.join(dataDir, 'postgres')) });
    expect(error).toMatchObject({ message: expect.stringMatching(reason) });
    expect(await server()).toBeUndefined();
  });
});
