/**
 * The roles of PostgreSQL and their rights. Logins are members of a role and have no rights of their own, so that a
 * password can be exchanged by a second login. Both `grant` and its check compute what is missing with the same queries.
 *
 * - The owner owns everything. It migrates and restores.
 * - The service is what gateways, projectors and sagas use. It appends events and rebuilds read models only with
 *   functions, and can create, change and remove no table, so that it cannot attach code that its owner would execute.
 * - The reader is for the ledger commands that only read.
 */
import pg from 'pg';
import { type Migration, migrate, StartError } from '#foundation';
import { withClient } from '#postgres';

const CONNECTION_OPTIONS = { name: 'grant', queryTimeoutMs: null } as const;

export interface RoleNames {
  readonly owner: string;
  readonly service: string;
  readonly reader: string;
}

/** Maximum wait for the lock of a table. Queries of running processes wait as long. */
const LOCK_TIMEOUT = '2s';
/** SQLSTATE lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';
/** SQLSTATE duplicate_object: another process created the role at the same time. */
const DUPLICATE_OBJECT = '42710';

const OWN_SCHEMAS = `'es', 'books', 'app', 'gateway', 'limits'`;
const SCHEMAS = `(${OWN_SCHEMAS}, 'public')`;
/** Everything that the migrations create in `public`, where other applications may have tables too. */
const PUBLIC_TABLES = `('migrations', 'leases', 'processes', 'rate_quotes', 'agreed_rates')`;
const READER_SCHEMAS = `('es', 'books', 'public')`;
/** Tables that the service may only read: what is in them decides which events exist and who may append. */
const PROTECTED_TABLES = `('es.events', 'es.contracts', 'public.migrations')`;
/** Functions that run with the rights of the owner. */
const SERVICE_FUNCTIONS = `('append_events', 'start_rebuild', 'finish_rebuild')`;

/** SQL condition: the object `o` belongs to no extension, table or column. */
function isOwnObject(catalogue: string): string {
  return `not exists (select from pg_depend d where d.classid = '${catalogue}'::regclass and d.objid = o.oid and d.deptype in ('e', 'a', 'i'))`;
}

/** SQL condition: the row of pg_class, joined with its schema, is part of the installation. */
const IS_OWN_RELATION = `(nspname in (${OWN_SCHEMAS}) or nspname = 'public' and relname in ${PUBLIC_TABLES})`;

/** $1 is the owner, $2 the service, $3 the reader. Every query returns statements. */
const OWNERSHIP_SQL = `
  with found as (
    select format('database %I', datname) as object, datdba as current
      from pg_database where datname = current_database()
    union all
    select format('schema %I', nspname), nspowner
      from pg_namespace where nspname in (${OWN_SCHEMAS}) or nspname like 'books\\_rebuild\\_%'
    union all
    select format('%s %I.%I', case relkind when 'S' then 'sequence' when 'v' then 'view' else 'table' end, nspname, relname),
           relowner
      from pg_class o join pg_namespace n on n.oid = o.relnamespace
     where (${IS_OWN_RELATION} or nspname like 'books\\_rebuild\\_%') and relkind in ('r', 'p', 'v', 'S')
       and ${isOwnObject('pg_class')}
    union all
    select 'function ' || o.oid::regprocedure, proowner
      from pg_proc o join pg_namespace n on n.oid = o.pronamespace
     where nspname in (${OWN_SCHEMAS}) and ${isOwnObject('pg_proc')}
  ), wrong as (
    select * from found where pg_get_userbyid(current) <> $1
  )
  -- Processes that run as the owner so far continue to work, until they have a login of the service.
  select distinct format('grant %I to %I', $1::text, rolname) as statement, 1 as step
    from wrong join pg_roles on pg_roles.oid = current where not rolsuper and rolname not in ($1, $2, $3)
  union all
  select format('alter %s owner to %I', object, $1::text), 2 from wrong
  order by step, statement`;

const RIGHTS_SQL = `
  with roles (role, level) as (values ($2::text, 'service'), ($3, 'reader')),
  tables as (
    select o.oid, nspname, format('%I.%I', nspname, relname) as name, format('%s.%s', nspname, relname) in ${PROTECTED_TABLES} as protected
      from pg_class o join pg_namespace n on n.oid = o.relnamespace
     where ${IS_OWN_RELATION} and o.relkind in ('r', 'p', 'v') and ${isOwnObject('pg_class')}
  ), rights as (
    select name, role, privilege, has_table_privilege(role, oid, privilege) as has,
           case when level = 'reader' then privilege = 'SELECT' and nspname in ${READER_SCHEMAS}
                when protected then privilege = 'SELECT'
                else privilege not in ('TRIGGER', 'REFERENCES') end as wanted
      from tables, roles,
           unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES']) as privilege
  )
  select format('revoke %s on %s from public, %I', string_agg(privilege, ', '), name, role) as statement, 1 as step
    from rights where has and not wanted group by name, role
  union all
  select format('grant %s on %s to %I', string_agg(privilege, ', '), name, role), 2
    from rights where wanted and not has group by name, role
  union all
  select format('grant execute on function %s to %I', oid::regprocedure, $2::text), 2
    from pg_proc where pronamespace in (to_regnamespace('es'), to_regnamespace('books')) and proname in ${SERVICE_FUNCTIONS}
     and not has_function_privilege($2, oid, 'EXECUTE')
  union all
  select format('revoke execute on function %s from public, %I', oid::regprocedure, $3::text), 1
    from pg_proc where pronamespace in (to_regnamespace('es'), to_regnamespace('books')) and proname in ${SERVICE_FUNCTIONS}
     and has_function_privilege($3, oid, 'EXECUTE')
  union all
  select format('revoke insert (%s) on es.events from public, %I', string_agg(attname, ', '), $2::text), 1
    from pg_attribute
   where attrelid = to_regclass('es.events') and attnum > 0 and has_column_privilege($2, attrelid, attname, 'INSERT')
     and not has_table_privilege($2, attrelid, 'INSERT') having count(*) > 0
  union all
  select format('grant usage on schema %I to %I', nspname, role), 2
    from pg_namespace, roles
   where nspname in ${SCHEMAS} and (level = 'service' or nspname in ${READER_SCHEMAS})
     and not has_schema_privilege(role, oid, 'USAGE')
  union all
  select format('revoke create on schema %I from public, %I', nspname, role), 1
    from pg_namespace, roles
   where nspname in ${SCHEMAS} and has_schema_privilege(role, oid, 'CREATE')
  union all
  select format('grant create, usage on schema public to %I', $1::text), 2
   where not has_schema_privilege($1, 'public', 'CREATE')
  union all
  select format('grant usage, select on sequence %I.%I to %I', nspname, relname, $2::text), 2
    from pg_class o join pg_namespace n on n.oid = o.relnamespace
   where ${IS_OWN_RELATION} and relkind = 'S' and relname <> 'events_position_seq'
     and not (has_sequence_privilege($2, o.oid, 'USAGE') and has_sequence_privilege($2, o.oid, 'SELECT'))
  union all
  select format('grant select on sequence es.events_position_seq to %I', role), 2
    from roles where not has_sequence_privilege(role, to_regclass('es.events_position_seq'), 'SELECT')
  union all
  select format('revoke create on database %I from public, %I', current_database(), role), 1
    from roles where has_database_privilege(role, current_database(), 'CREATE')
  union all
  select format('grant connect on database %I to %I', current_database(), role), 2
    from roles where not has_database_privilege(role, current_database(), 'CONNECT')
  order by step, statement`;

/** Rights to tables of later migrations. */
const DEFAULT_RIGHTS_SQL = `
  with wanted as (
    select $1::text as creator, nspname as schema, kind, role, privileges
      from pg_namespace,
           (values ('r', $2::text, array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'], false),
                   ('S', $2, array['SELECT', 'USAGE'], false),
                   ('r', $3, array['SELECT'], true)) as w (kind, role, privileges, is_reader)
     where nspname in ${SCHEMAS} and (not is_reader or nspname in ${READER_SCHEMAS})
  )
  select format('alter default privileges for role %I in schema %I grant %s on %s to %I', creator, schema,
                array_to_string(privileges, ', '), case kind when 'S' then 'sequences' else 'tables' end, role) as statement
    from wanted
   where not privileges <@ array(
           select granted.privilege_type
             from pg_default_acl a
             join pg_namespace n on n.oid = a.defaclnamespace
            cross join aclexplode(defaclacl) as granted
            where granted.grantee = to_regrole(quote_ident(role)) and defaclobjtype::text = kind and n.nspname = wanted.schema
              and pg_get_userbyid(defaclrole) = creator)
   order by 1`;

/** Returns the statements that give the roles their rights in a database, in their order. Changes nothing. */
export async function listMissingRights(connectionString: string, names: RoleNames): Promise<readonly string[]> {
  return withClient({ connectionString, ...CONNECTION_OPTIONS }, async (client) => {
    const missingRoles = await listMissingRoles(client, names);
    return missingRoles.length > 0 ? missingRoles : listMissingInDatabase(client, names);
  });
}

/**
 * Creates the roles and gives them their rights in a database. Idempotent; roles may be running. An empty database is
 * migrated first, because rights belong to tables.
 * @returns the statements that were executed, apart from migrations
 * @throws StartError if a transaction locks a table for too long, or if rights are still missing because the user or a
 *   role inherits others; DatabaseError if the user is no administrator. The rights in the database are then unchanged
 */
export async function grantRights(
  connectionString: string,
  migrations: readonly Migration[],
  names: RoleNames,
): Promise<readonly string[]> {
  return withClient({ connectionString, ...CONNECTION_OPTIONS }, async (client) => {
    const executed: string[] = [];
    const execute = async (statements: readonly string[]) => {
      for (const statement of statements) await client.query(statement);
      executed.push(...statements);
    };
    for (const statement of await listMissingRoles(client, names)) await execute([statement]).catch(ignoreExisting);
    if (await isEmpty(client)) {
      await execute(await queryStatements(client, OWNERSHIP_SQL, names));
      await migrate(connectionString, migrations);
    }
    try {
      await client.query(`begin; set local lock_timeout = '${LOCK_TIMEOUT}'`);
      // Each list depends on the changes before: a new owner gets the rights of the old one, which lacks some.
      for (const sql of DATABASE_SQL) await execute(await queryStatements(client, sql, names));
      await client.query('commit');
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      throw new StartError('A transaction locks a table: end it, and run the command again.');
    }
    const [missing] = await listMissingInDatabase(client, names);
    if (missing !== undefined)
      throw new StartError(`A role inherits rights of another one, or lacks some, so this had no effect: ${missing}.`);
    return executed;
  });
}

const DATABASE_SQL = [OWNERSHIP_SQL, RIGHTS_SQL, DEFAULT_RIGHTS_SQL];

async function listMissingInDatabase(client: pg.Client, names: RoleNames): Promise<readonly string[]> {
  const statements: string[] = [];
  for (const sql of DATABASE_SQL) statements.push(...(await queryStatements(client, sql, names)));
  return statements;
}

async function listMissingRoles(client: pg.Client, { owner, service, reader }: RoleNames): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select name from unnest($1::text[]) as name where to_regrole(quote_ident(name)) is null',
    [[owner, service, reader]],
  );
  return rows.map(({ name }) => `create role ${pg.escapeIdentifier(name)} nologin`);
}

async function queryStatements(
  client: pg.Client,
  sql: string,
  { owner, service, reader }: RoleNames,
): Promise<readonly string[]> {
  const { rows } = await client.query<{ statement: string }>(sql, [owner, service, reader]);
  return rows.map(({ statement }) => statement);
}

async function isEmpty(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ empty: boolean }>(`select to_regclass('public.migrations') is null as empty`);
  return rows[0]?.empty === true;
}

function ignoreExisting(error: unknown): void {
  if ((error as { code?: string }).code !== DUPLICATE_OBJECT) throw error;
}
