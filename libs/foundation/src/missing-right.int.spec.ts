import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { StoreUnavailableError } from '#kernel';
import { createTestDatabase, type TestDatabase } from '#testing';
import { openFoundation } from './foundation.ts';
import { createLog, type Log } from './log.ts';
import { explainMissingRight, formatFailure } from './missing-right.ts';
import { readSettings } from './settings-reader.ts';

const LOGIN = `lacking-${randomUUID().slice(0, 8)}`;
const ADVICE =
  'run "npm run grant" ("npm run grant -- --check" prints what is missing), and make the login a member of the role that it needs';

let database: TestDatabase;
let url: string;
let superuser: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  const { password } = new URL(database.url);
  url = Object.assign(new URL(database.url), { username: LOGIN }).href;
  superuser = new pg.Client({ connectionString: database.superuserUrl });
  await superuser.connect();
  await superuser.query(`create role "${LOGIN}" login password ${pg.escapeLiteral(decodeURIComponent(password))}`);
  const foundation = await openFoundation(readSettings({ DATABASE_URL: database.url }), createLog('fatal'));
  await foundation.close();
});
afterAll(async () => {
  await superuser.query(`drop owned by "${LOGIN}"`);
  await superuser.query(`drop role "${LOGIN}"`);
  await superuser.end();
  await database.drop();
});

function open(log = createLog('fatal')) {
  return openFoundation(readSettings({ DATABASE_URL: url }), log);
}

describe('a missing right in PostgreSQL', () => {
  test('ends a start with one sentence that says how to grant it, whatever lacks it', async () => {
    const sentence = (table: string) =>
      `The database user has too few rights: permission denied for ${table}; ${ADVICE}.`;
    expect(formatFailure(await open().catch((error) => error))).toBe(sentence('table migrations'));
    await superuser.query(`grant select on public.migrations to "${LOGIN}"`);
    expect(formatFailure(await open().catch((error) => error))).toBe(sentence('schema es'));
    await superuser.query(`grant usage on schema es to "${LOGIN}"; grant select on es.contracts to "${LOGIN}"`);
    expect(formatFailure(await open().catch((error) => error))).toBe(sentence('table events'));
  });

  test('is an error in the log while a role runs, with the same advice', async () => {
    await superuser.query(
      `grant usage on schema books to "${LOGIN}"; grant select on all tables in schema es, books to "${LOGIN}";
       grant select on all sequences in schema es to "${LOGIN}"`,
    );
    const lines: string[] = [];
    const error = (_: object, message: string) => void lines.push(message);
    const foundation = await open({ ...createLog('fatal'), error } as unknown as Log);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const cause = await client.query('delete from es.due').catch((reason) => reason);
    await client.end();
    foundation.runtime.reportError('a timer failed', new StoreUnavailableError('no timers', { cause }));
    await foundation.close();
    expect(lines).toEqual([`a timer failed; the database user lacks a right: ${ADVICE}`]);
  });

  test('does not change what other errors say', () => {
    const other = new Error('the disk is full', { cause: Object.assign(new Error('EACCES'), { code: 'EACCES' }) });
    expect(explainMissingRight(other)).toBe(other);
    expect(formatFailure(other)).toBe('the disk is full');
  });
});
