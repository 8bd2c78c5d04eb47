import { expect, test } from '@jest/globals';
import { StoreUnavailableError } from '#kernel';
import { openPool } from '#postgres';
import { createTestDatabase } from '#testing';
import { withUnavailableErrors } from './unavailable.ts';

test('a query fails with StoreUnavailableError if the database rejects the login, for example after a new password', async () => {
  const database = await createTestDatabase();
  const connectionString = Object.assign(new URL(database.url), { username: 'unknown' }).href;
  const pool = withUnavailableErrors(openPool({ connectionString, name: 'test' }));
  const failure = await pool.query('select 1').catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(StoreUnavailableError);
  expect((failure as Error).cause).toMatchObject({ code: expect.stringMatching(/^28/) });
  await pool.end();
  await database.drop();
});
