import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { WRITE_CONTRACT } from '#eventstore';
import { createLog, dropCaches, issueFencingToken, migrate, openFoundation, readSettings } from '#foundation';
import { PROJECTOR_LEASE, projections, rebuild } from '#projections';
import { createTestDatabase, type TestDatabase, TestWorld } from '#testing';
import { runLedgerCommand } from '../../ledger/src/command-line.ts';
import { listDatabases } from './databases.ts';
import { grantRights, listMissingRights, type RoleNames } from './postgres-roles.ts';

const MASTER_KEY = randomBytes(32).toString('hex');
const suffix = randomUUID().slice(0, 8);
const NAMES: RoleNames = { owner: `owner-${suffix}`, service: `service-${suffix}`, reader: `reader-${suffix}` };
const LOGINS = { admin: NAMES.owner, first: NAMES.service, second: NAMES.service, finance: NAMES.reader } as const;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
  const server = await createTestDatabase();
  const names = [...Object.keys(LOGINS).map(toLogin), ...Object.values(NAMES)];
  for (const name of names) await execute(server.superuserUrl, `drop role if exists ${pg.escapeIdentifier(name)}`);
  await server.drop();
});

function toLogin(name: string): string {
  return `${name}-${suffix}`;
}

/** Returns the URL of the test database for a login. */
function urlFor(login: keyof typeof LOGINS): string {
  return Object.assign(new URL(database.url), { username: toLogin(login) }).href;
}

async function execute(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client.query(sql).finally(() => client.end());
}

async function createLogins(): Promise<void> {
  const password = pg.escapeLiteral(decodeURIComponent(new URL(database.url).password));
  for (const [login, role] of Object.entries(LOGINS))
    await execute(
      database.superuserUrl,
      `create role ${pg.escapeIdentifier(toLogin(login))} login password ${password} in role ${pg.escapeIdentifier(role)}`,
    );
}

function grant() {
  const [main] = listDatabases(database.superuserUrl, undefined);
  return grantRights(database.superuserUrl, main?.migrations ?? [], NAMES);
}

describe('the roles of PostgreSQL', () => {
  test('are missing until they are granted, and a repeated grant changes nothing', async () => {
    expect(await listMissingRights(database.superuserUrl, NAMES)).toContain(`create role "${NAMES.owner}" nologin`);
    const executed = await grant();
    expect(executed.length).toBeGreaterThan(10);
    expect(await listMissingRights(database.superuserUrl, NAMES)).toEqual([]);
    expect(await grant()).toEqual([]);
    await createLogins();
  });

  test('cover every schema of the installation', async () => {
    const schemas = await execute(
      urlFor('first'),
      `select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
          and not (has_schema_privilege(oid, 'usage') and pg_get_userbyid(nspowner) in ('${NAMES.owner}', 'pg_database_owner'))`,
    );
    expect(schemas.rows).toEqual([]);
  });

  test('let a service login run gateway, projector and sagas', async () => {
    const world = await TestWorld.openWithSagas({ DATABASE_URL: urlFor('first'), MASTER_KEY });
    const account = await world.createAccount(5);
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': randomUUID() };
    const body = { model: 'openai/gpt-5-mini', input: 'Hello' };
    const response = await world.send('POST', '/v1/responses', { body, headers });
    expect(response.status).toBe(200);
    expect((await world.send('POST', '/v1/responses', { body, headers })).text).toBe(response.text);
    expect((await world.get(`/v1/responses/${response.body.id}`, account)).status).toBe(200);
    expect((await world.sendChat(account)).status).toBe(200);
    await world.close();
  });

  test('let a service login rebuild every read model, also one that another service login has rebuilt', async () => {
    await rebuildAll(urlFor('first'), 2);
    const second = new pg.Client({ connectionString: urlFor('second') });
    await second.connect();
    await dropCaches(second);
    await second.end();
    await rebuildAll(urlFor('second'));
    expect(await listMissingRights(database.superuserUrl, NAMES)).toEqual([]);
  });

  test.each([
    [
      'insert into es.events (stream, revision, id, type, data, metadata) values ($$s$$, 0, gen_random_uuid(), $$t$$, $${}$$, $${}$$)',
    ],
    [`update es.events set type = 'Changed'`],
    ['delete from es.events'],
    ['truncate es.events'],
    ['drop table es.events'],
    ['drop schema es cascade'],
    ['alter table es.events disable trigger user'],
    ['drop trigger append_only on es.events'],
    ['create trigger mine before insert on es.events for each row execute function es.refuse_change()'],
    ['create or replace function es.refuse_change() returns trigger language plpgsql as $$ begin return null; end $$'],
    [`select setval('es.events_position_seq', 1)`],
    [`select nextval('es.events_position_seq')`],
    ['create table es.mine ()'],
    ['create table books.mine ()'],
    ['drop table books.journal'],
    ['alter table books.journal add column mine int default es.refuse_change()'],
    ['create trigger mine before truncate on books.journal for each statement execute function es.refuse_change()'],
    ['create schema mine'],
    ['create table public.mine ()'],
    ['update es.contracts set oldest = 9'],
    ['delete from public.migrations'],
    [`set role "${NAMES.owner}"`],
  ])('the service may not %s', async (sql) => {
    await expect(execute(urlFor('first'), sql)).rejects.toMatchObject({ code: '42501' });
  });

  test('let the reader verify and list wallets, but change nothing', async () => {
    const env = { DATABASE_URL: urlFor('finance'), LOG_LEVEL: 'fatal' };
    for (const command of [
      'verify',
      'wallets',
      'accruals',
      'costs',
      'payments',
      'jobs',
      'challenges',
      'keys',
      'replay',
    ]) {
      const lines: string[] = [];
      expect(await runLedgerCommand([command], env, (line) => lines.push(line))).toBe(true);
      if (command === 'verify') expect(lines.at(-1)).toBe('drift 0');
    }
    for (const sql of [
      'delete from books.journal',
      'update es.due set failures = 1',
      'insert into es.events default values',
      `select es.append_events(${WRITE_CONTRACT}, 's', '{-1}', '{0}', '{6f2e0a0e-0000-4000-8000-000000000000}', 't', '{}', '{}')`,
      `select books.start_rebuild('journal')`,
      'select from app.responses',
      `select set_config('x.y', nextval('es.due_woken')::text, false)`,
    ])
      await expect(execute(urlFor('finance'), sql)).rejects.toMatchObject({ code: '42501' });
  });

  test('let the owner migrate; a service starts only then, and may use the new table, which the reader may read', async () => {
    const added = {
      id: `added-${suffix}`,
      minContract: 0,
      sql: 'create table books.added (id int); create table es.added (id int)',
    };
    const [main] = listDatabases(database.url, undefined);
    const migrations = [...(main?.migrations ?? []), added];
    await expect(migrate(urlFor('first'), migrations)).rejects.toThrow(
      new RegExp(`lacks the migrations ${added.id}, and its user may not apply them .*: run "npm run migrate" .*`),
    );
    await migrate(urlFor('admin'), migrations);
    await migrate(urlFor('first'), migrations);
    await execute(
      urlFor('second'),
      'insert into es.added values (1); insert into books.added values (1); truncate books.added',
    );
    expect((await execute(urlFor('finance'), 'select from es.added')).rowCount).toBe(1);
    expect(await listMissingRights(database.superuserUrl, NAMES)).toEqual([]);
  });
});

test('a database that another user owns and uses is granted: that user continues to migrate and to rebuild', async () => {
  const other = await createTestDatabase();
  const [{ migrations } = { migrations: [] }] = listDatabases(other.url, undefined);
  await migrate(other.url, migrations);
  const reader = new pg.Client({ connectionString: other.url });
  await reader.connect();
  await reader.query('begin; select from es.snapshots');
  await expect(grantRights(other.superuserUrl, migrations, NAMES)).rejects.toThrow('A transaction locks a table');
  await reader.end();
  const executed = await grantRights(other.superuserUrl, migrations, NAMES);
  expect(executed[0]).toMatch(`grant "${NAMES.owner}" to `);
  expect(await listMissingRights(other.superuserUrl, NAMES)).toEqual([]);
  await rebuildAll(other.url, 1);
  const added = { id: `added-${suffix}`, minContract: 0, sql: 'alter table books.journal add column added int' };
  await migrate(other.url, [...migrations, added]);
  expect(await listMissingRights(other.superuserUrl, NAMES)).toEqual([]);
  await other.drop();
});

test('in the schema public only tables of the installation are granted, and all of them; those of other applications are not', async () => {
  const shared = await createTestDatabase();
  const [{ migrations } = { migrations: [] }] = listDatabases(shared.url, undefined);
  await migrate(shared.url, migrations);
  const foreign = [
    'table public.invoices (id int)',
    'sequence public.invoice_numbers',
    'view public.open_invoices as select from public.invoices',
    'function public.send_invoices() returns void language sql as $$ select $$',
  ];
  for (const object of foreign) await execute(shared.superuserUrl, `create ${object}`);

  const executed = await grantRights(shared.superuserUrl, migrations, NAMES);
  expect(executed.filter((statement) => statement.includes('invoice'))).toEqual([]);
  expect(await listMissingRights(shared.superuserUrl, NAMES)).toEqual([]);
  const others = await execute(
    shared.superuserUrl,
    `select relname as name from pg_class where relkind <> 'i' and relnamespace = 'public'::regnamespace and pg_get_userbyid(relowner) <> '${NAMES.owner}'
      union all
     select proname from pg_proc where pronamespace = 'public'::regnamespace and pg_get_userbyid(proowner) <> '${NAMES.owner}'
      order by 1`,
  );
  expect(others.rows.map(({ name }) => name)).toEqual([
    'invoice_numbers',
    'invoices',
    'open_invoices',
    'send_invoices',
  ]);
  await shared.drop();
});

test('an administrator who is no superuser creates the roles for a database with the content alone', async () => {
  const content = await createTestDatabase();
  const [, { migrations } = { migrations: [] }] = listDatabases('', content.url);
  const admin = `creator-${suffix}`;
  const names = { owner: `o-${suffix}`, service: `s-${suffix}`, reader: `r-${suffix}` };
  const password = pg.escapeLiteral(decodeURIComponent(new URL(content.url).password));
  await execute(
    content.superuserUrl,
    `create role "${admin}" login createrole createdb password ${password}; alter database ${new URL(content.url).pathname.slice(1)} owner to "${admin}"`,
  );
  const url = Object.assign(new URL(content.url), { username: admin }).href;
  await grantRights(url, migrations, names);
  expect(await listMissingRights(url, names)).toEqual([]);
  await content.drop();
  for (const name of [...Object.values(names), admin]) await execute(database.superuserUrl, `drop role "${name}"`);
});

async function rebuildAll(databaseUrl: string, count = projections.length): Promise<void> {
  const foundation = await openFoundation(readSettings({ DATABASE_URL: databaseUrl }), createLog('fatal'));
  const issueToken = () => issueFencingToken(databaseUrl, PROJECTOR_LEASE);
  for (const projection of projections.slice(0, count))
    await rebuild(projection, { store: foundation.store.lenient, databaseUrl, issueFencingToken: issueToken });
  await foundation.close();
}
