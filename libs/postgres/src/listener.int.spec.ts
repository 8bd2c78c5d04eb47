import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, NetworkLink, type TestDatabase } from '#testing';
import { Listener } from './listener.ts';

let database: TestDatabase;
let link: NetworkLink;
beforeAll(async () => {
  database = await createTestDatabase();
  link = await NetworkLink.open(Number(new URL(database.url).port));
});
afterAll(async () => {
  await link.close();
  await database.drop();
});

test('a listener is closed although its server does not respond any more', async () => {
  const listener = new Listener({
    connectionString: Object.assign(new URL(database.url), { host: link.address }).href,
    channel: 'test',
    onNotification: () => {},
    onProblem: () => {},
  });
  await listener.open();

  link.interrupt();

  await expect(listener.close()).resolves.toBeUndefined();
});
