import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { TestWorld } from '#testing';

let world: TestWorld;
let admin: pg.Client;
beforeAll(async () => {
  world = await TestWorld.open();
  const url = Object.assign(new URL(world.databaseUrl), { username: 'postgres' });
  admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await world.close();
});

const listUnable = async (): Promise<readonly string[]> =>
  (await world.send('GET', '/health/ready')).body.checks.workflows.unable ?? [];

test('sweeps whose connections may only read are unable, although their leases can be renewed', async () => {
  const setReadOnly = async (mode: 'on' | 'off') => {
    await admin.query(
      `alter database ${new URL(world.databaseUrl).pathname.slice(1)} set default_transaction_read_only = ${mode}`,
    );
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
          and not starts_with(application_name, 'countinghouse-lease-')`,
    );
  };
  expect(await listUnable()).toEqual([]);

  await setReadOnly('on');

  await world.waitUntil(async () => {
    const unable = await listUnable();
    return unable.includes('hold-expiry') && unable.includes('file-expiry');
  });
  await setReadOnly('off');
});

test('sweeps and workflows whose user may not append are unable', async () => {
  const user = new URL(world.databaseUrl).username;
  await world.waitUntil(async () => (await listUnable()).length === 0);

  await admin.query(`revoke execute on function es.append_events from "${user}"`);

  await world.waitUntil(async () => {
    const unable = await listUnable();
    return unable.includes('hold-expiry') && unable.includes('topups');
  });
  await admin.query(`grant execute on function es.append_events to "${user}"`);
});
