import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { EndpointHealth, OutputLengthStats, SampleRegistry } from '#application';
import type { Endpoint } from '#catalogue';
import { createMigratedDatabase, SystemClock, type TestDatabase } from '#testing';
import { PostgresSampleStore } from './sample-store.ts';

const MODEL = { id: 'v/m', maxOutput: 32_000 };
const ENDPOINT = { slug: 'maker' } as Endpoint;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => {}); // the database may be dropped before the last connection is closed
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** The measurements of a gateway. */
function openGateway() {
  const samples = new SampleRegistry();
  const store = new PostgresSampleStore(pool);
  const [lengths, health] = [new OutputLengthStats(samples), new EndpointHealth(new SystemClock(), samples)];
  return { samples, lengths, health, exchange: () => samples.exchange(store) };
}

test('gateways of one database share lengths and speeds, also with one that starts later', async () => {
  const [first, second] = [openGateway(), openGateway()];
  for (let i = 0; i < 20; i++) first.lengths.start(MODEL, 'a')({ tokens: 5_000, isTruncated: false });
  second.health.recordDelivery(MODEL, ENDPOINT, 1_000, 10_000);
  for (const gateway of [first, second, first]) await gateway.exchange();
  const late = openGateway();
  await late.exchange();
  for (const { lengths, health } of [first, second, late]) {
    expect(lengths.getLengths(MODEL, 'b')).toEqual({ initial: 5_000, long: 5_000, reserved: 5_000 });
    expect(health.getMaxTokensPerSecond(MODEL, ENDPOINT)).toBe(100);
  }
});

test('a gateway reads each sample of another once, and none of its own', async () => {
  const [first, second] = [openGateway(), openGateway()];
  first.samples.record('once', 1);
  for (const gateway of [first, second, first, second, first, second]) await gateway.exchange();
  expect([first, second].map(({ samples }) => samples.get('once')?.count)).toEqual([1, 1]);
});

test('ids do not restart after a crash of the database, which would hide new samples from running gateways', async () => {
  const text = `select relpersistence from pg_class
                where relkind = 'S' and relnamespace = 'limits'::regnamespace`;
  expect((await pool.query(text)).rows).toEqual([{ relpersistence: 'p' }]);
});

test('the table retains the newest 128 samples of each measurement, and what was added last', async () => {
  const gateway = openGateway();
  gateway.samples.record('one', 1);
  for (let value = 1; value <= 400; value++) {
    gateway.samples.record('many', value);
    if (value % 100 === 0) await gateway.exchange();
  }
  const text = `select name, count(*)::int, min(value)::int, max(value)::int from limits.samples
                 where name in ('many', 'one') group by name order by name`;
  expect((await pool.query(text)).rows).toEqual([
    { name: 'many', count: 228, min: 173, max: 400 },
    { name: 'one', count: 1, min: 1, max: 1 },
  ]);
  const late = openGateway();
  await late.exchange();
  expect(late.samples.get('many')?.count).toBe(128);
});

test('gateways that add samples of the same measurements at once do not block each other', async () => {
  const gateways = Array.from({ length: 8 }, openGateway);
  for (let round = 0; round < 5; round++) {
    for (const { samples } of gateways)
      for (let value = 0; value < 300; value++) samples.record(`busy ${value % 3}`, value);
    await Promise.all(gateways.map(({ exchange }) => exchange()));
  }
  const { rows } = await pool.query("select count(*)::int from limits.samples where name like 'busy %'");
  expect(rows[0].count).toBeLessThanOrEqual(3 * (128 + 8 * 100));
});

test('a gateway without the database continues with its own samples, and shares them later', async () => {
  const { samples, exchange } = openGateway();
  samples.record('retried', 5);
  const away = new pg.Pool({ connectionString: database.url.replace(/[^/]+$/, 'not_there') });
  await expect(samples.exchange(new PostgresSampleStore(away))).rejects.toThrow('not_there');
  await away.end();
  expect(samples.get('retried')?.count).toBe(1);
  await exchange();
  const other = openGateway();
  await other.exchange();
  expect(other.samples.get('retried')?.count).toBe(1);
});
