import '#foundation/node-version';
import { grantEventStoreDbAccess, parseEventStoreDbAddress } from '#eventstore';
import { findMissingRight, readSetting, SETTINGS, StartError } from '#foundation';
import { createProgram, runMain } from '#foundation/command-line';
import { optional, SettingError, secret } from '#foundation/program';
import { retry, StoreUnavailableError } from '#kernel';
import { nodeRandomness, nodeTimers } from '#runtime';
import { listDatabases } from './databases.ts';
import { grantRights, listMissingRights, type RoleNames } from './postgres-roles.ts';

/** The administrator that every EventStoreDB has. */
const ADMIN_USERNAME = 'admin';
/** How long to retry while EventStoreDB is unavailable, for instance because it is starting. */
const GRANT_TIMEOUT_MS = 60_000;
const BACKOFF = { minMs: 1_000, maxMs: 1_000 };

const ADMIN_PASSWORD_SETTING = secret(
  'STORE_ADMIN_PASSWORD',
  /./,
  `the password of EventStoreDB's user ${ADMIN_USERNAME}`,
  '',
);
const ADMIN_URL_SETTING = optional(createAdminUrlSetting('DATABASE_ADMIN_URL'));
const CONTENT_ADMIN_URL_SETTING = optional(createAdminUrlSetting('CONTENT_DATABASE_ADMIN_URL'));

function createAdminUrlSetting(variable: string) {
  return secret(variable, /^postgres(ql)?:\/\/\S+$/, 'an address of PostgreSQL with the name of an administrator', '');
}

const program = createProgram(
  'npm run grant --',
  'Creates the roles and their rights in PostgreSQL if DATABASE_ADMIN_URL is set, and the user in EVENTSTORE_URL.',
);
program.option('--check', 'Only prints what is missing in PostgreSQL.');
for (const level of ['owner', 'service', 'reader'] as const)
  program.option(`--${level} <role>`, `The name of the role for the ${level}.`, `countinghouse_${level}`);
program.action(grant);

type GrantOptions = RoleNames & { readonly check?: boolean };

/**
 * Creates the roles and their rights in PostgreSQL if DATABASE_ADMIN_URL is set, and the user in EVENTSTORE_URL with its
 * rights in EventStoreDB if that is set. Idempotent. With `--check` only prints what is missing in PostgreSQL.
 */
async function grant({ check = false, ...names }: GrantOptions): Promise<void> {
  const adminUrl = readSetting(ADMIN_URL_SETTING, process.env);
  const eventStoreUrl = readSetting(SETTINGS.eventStoreUrl, process.env);
  if (adminUrl !== undefined) await grantInPostgres(adminUrl, names, check);
  else if (check || eventStoreUrl === undefined)
    throw new SettingError(`DATABASE_ADMIN_URL${check ? '' : ' or EVENTSTORE_URL'} must be set.`);
  if (eventStoreUrl !== undefined && !check) await grantInEventStoreDb(eventStoreUrl);
}

async function grantInPostgres(adminUrl: string, names: RoleNames, isCheck: boolean): Promise<void> {
  const contentAdminUrl = readSetting(CONTENT_ADMIN_URL_SETTING, process.env);
  if (readSetting(SETTINGS.contentDatabaseUrl, process.env) !== undefined && contentAdminUrl === undefined)
    throw new SettingError('CONTENT_DATABASE_ADMIN_URL must be set, because CONTENT_DATABASE_URL is set.');
  for (const { url, migrations } of listDatabases(adminUrl, contentAdminUrl)) {
    const database = new URL(url).pathname.slice(1);
    const statements = isCheck ? await listMissingRights(url, names) : await grantRights(url, migrations, names);
    for (const statement of statements) process.stdout.write(`${database}: ${statement}\n`);
    if (isCheck && statements.length > 0) process.exitCode = 1;
    const result = isCheck && statements.length > 0 ? 'rights are missing' : 'the roles have their rights';
    process.stdout.write(`${database}: ${result}\n`);
  }
  if (isCheck) return;
  process.stdout.write(`Create a login with: create role <name> login password '…' in role ${names.service}\n`);
}

async function grantInEventStoreDb(address: string): Promise<void> {
  const parsedAddress = parseEventStoreDbAddress(address);
  if (typeof parsedAddress !== 'string' && !parsedAddress.usesTls)
    throw new SettingError('EVENTSTORE_URL must use TLS: a server without TLS has no users.');
  await grantWhenAvailable(address, readSetting(ADMIN_PASSWORD_SETTING, process.env)).catch((error) => {
    throw new StartError(formatEventStoreDbError(error), { cause: error });
  });
  process.stdout.write('The user in EVENTSTORE_URL exists and may read $all.\n');
}

async function grantWhenAvailable(address: string, password: string): Promise<void> {
  const deadline = performance.now() + GRANT_TIMEOUT_MS;
  await retry(() => grantEventStoreDbAccess(address, { username: ADMIN_USERNAME, password }), {
    ...BACKOFF,
    chance: nodeRandomness.chance,
    sleep: nodeTimers.sleep,
    shouldRetry: (error) => error instanceof StoreUnavailableError && performance.now() <= deadline,
  });
}

function formatEventStoreDbError(error: Error): string {
  const { cause } = error instanceof StoreUnavailableError ? error : {};
  return `EventStoreDB: ${error.message}${cause instanceof Error ? ` (${cause.message})` : ''}.`;
}

/** Formats an error for the user. The text names PostgreSQL, unless it is a sentence already. */
function formatError(error: unknown): string {
  if (error instanceof SettingError || error instanceof StartError) return error.message;
  const reason = findMissingRight(error);
  if (reason !== undefined)
    return `PostgreSQL: ${reason}: the user must be a superuser, or own the database and its tables and have CREATEROLE and CREATEDB.`;
  return `PostgreSQL: ${error instanceof Error ? error.message : error}.`;
}

await runMain(program, formatError);
