import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '#testing';
import { listenForWakeups, ProjectorWakeup } from './projector-wakeup.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test('the projector is notified once of 50 simultaneous callers, and again after its connection was lost', async () => {
  const { url: connectionString } = database;
  const pool = new pg.Pool({ connectionString, max: 2 });
  let heard = Promise.withResolvers<void>();
  let times = 0;
  const problems: string[] = [];
  const listener = listenForWakeups({
    connectionString,
    onNotification: () => {
      times++;
      heard.resolve();
    },
    onProblem: (problem) => void problems.push(problem),
  });
  await listener.open();
  const wanted = new ProjectorWakeup(pool);
  for (let n = 0; n < 50; n++) wanted.notify();
  await heard.promise;
  expect(times).toBe(1);

  heard = Promise.withResolvers();
  await pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'countinghouse-listen'",
  );
  const telling = setInterval(() => wanted.notify(), 20);
  await heard.promise;
  clearInterval(telling);
  await listener.close();
  await pool.end();
  expect(problems).toEqual([]);
});
