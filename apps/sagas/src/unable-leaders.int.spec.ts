/** Leaders that cannot work are found after a while, so both tests wait at the same time. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { TestWorld } from '#testing';

interface Impaired {
  readonly world: TestWorld;
  readonly admin: pg.Client;
}

const opened = new AsyncDisposableStack();
let readOnly: Impaired;
let appendless: Impaired;
beforeAll(async () => {
  [readOnly, appendless] = await Promise.all([open(), open()]);
  for (const { world } of [readOnly, appendless]) expect(await listUnable(world)).toEqual([]);
  await setReadOnly('on');
  await appendless.admin.query(`revoke execute on function es.append_events from "${user()}"`);
});
afterAll(async () => {
  await setReadOnly('off');
  await appendless.admin.query(`grant execute on function es.append_events to "${user()}"`);
  await opened.disposeAsync();
});

async function open(): Promise<Impaired> {
  const world = await TestWorld.openWithSagas();
  opened.defer(() => world.close());
  const url = Object.assign(new URL(world.databaseUrl), { username: 'postgres' });
  const admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  opened.defer(() => admin.end());
  return { world, admin };
}

async function setReadOnly(mode: 'on' | 'off'): Promise<void> {
  const { world, admin } = readOnly;
  const database = new URL(world.databaseUrl).pathname.slice(1);
  await admin.query(`alter database ${database} set default_transaction_read_only = ${mode}`);
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()
        and not starts_with(application_name, 'countinghouse-lease-')`,
  );
}

const user = () => new URL(appendless.world.databaseUrl).username;

async function listUnable(world: TestWorld): Promise<readonly string[]> {
  return (await world.send('GET', '/health/ready')).body.checks.workflows.unable ?? [];
}

test('sweeps whose connections may only read are unable, although their leases can be renewed', async () => {
  await readOnly.world.waitUntil(async () => {
    const unable = await listUnable(readOnly.world);
    return unable.includes('hold-expiry') && unable.includes('file-expiry');
  });
});

test('sweeps and workflows whose user may not append are unable', async () => {
  await appendless.world.waitUntil(async () => {
    const unable = await listUnable(appendless.world);
    return unable.includes('hold-expiry') && unable.includes('topups');
  });
});
