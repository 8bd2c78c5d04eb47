import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { PostgresCheckpoints, PostgresEventStore, PostgresWorkflowSchedule } from '#eventstore';
import { workflowScheduleContract } from '../../../testing/src/contracts/workflow-schedule.ts';
import { ParcelWorld, ProcessKilledError } from '../../../testing/src/scenarios/parcel-world.ts';
import { createMigratedDatabase, type TestDatabase } from '../../../testing/src/world/test-database.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

workflowScheduleContract('in PostgreSQL', async () => {
  await pool.query('truncate es.due');
  return new PostgresWorkflowSchedule(pool);
});

describe('a workflow over PostgreSQL', () => {
  test('wakes its streams under the token of its lease, so that an earlier leader cannot remove their timers', async () => {
    await pool.query('truncate es.due');
    const store = new PostgresEventStore({ connectionString: database.url, onProblem: () => {} });
    const schedule = new PostgresWorkflowSchedule(pool);
    const world = new ParcelWorld(store, schedule, { checkpoints: new PostgresCheckpoints(pool) });
    await world.orderParcel('fenced');
    const earlier = world.createLease(new AbortController());
    await world.runProcess(
      () => false,
      async (what, work) => {
        if (what === 'reschedule') throw new ProcessKilledError();
        return work();
      },
    );
    const rows = await schedule.findDue('parcels', world.now(), 10);
    expect(rows.map(({ id }) => id)).toEqual(['fenced']);
    await schedule.reschedule(
      'parcels',
      earlier.token,
      rows.map((row) => ({ ...row, at: null })),
    );
    expect(await schedule.listWaiting('parcels')).toEqual(['fenced']);
    await store.close();
  });

  test('ships no parcel twice, and announces exactly the shipped ones, when its process dies at the nth action', async () => {
    await pool.query('truncate es.due');
    const onProblem = () => {};
    const store = new PostgresEventStore({ connectionString: database.url, onProblem });
    const world = new ParcelWorld(store, new PostgresWorkflowSchedule(pool), {
      checkpoints: new PostgresCheckpoints(pool),
      sleep: (milliseconds, { signal } = {}) => delay(milliseconds / 25, undefined, { signal }).catch(() => {}),
    });
    for (let n = 2; n <= 23; n += 3) {
      const id = `p${n}`;
      const last = async () => (await world.listEventTypes(id)).at(-1) ?? '';
      const isShipped = () => world.shipped.includes(id);
      const atEnd = async () =>
        (await last()) === 'ParcelAnnounced' || ((await last()) === 'ShippingUnknown' && !isShipped());
      await world.orderParcel(id);
      let actions = 0;
      await world.runProcess(atEnd, async (_, work) => {
        if (++actions < n) return work();
        if (n % 2 === 0) await work();
        throw new ProcessKilledError();
      });
      await world.runProcess(atEnd);
      expect({ n, shipped: world.shipped.filter((each) => each === id).length }).toEqual({
        n,
        shipped: Number(isShipped()),
      });
    }
    expect(world.announced).toEqual(new Set(world.shipped));
    expect(world.shipped.length).toBeGreaterThan(5);
    await store.close();
  });
});
