import { beforeEach, describe, expect, test } from '@jest/globals';
import { StoreClock } from '#connectors';

const MINUTE = 60_000;
const START = Date.parse('2026-11-22T12:00:00.000Z');

/** Elapsed true time, in milliseconds. */
let passed: number;
/** Deviations of the clocks from the true time, in milliseconds. */
let wrong: { store: number; machine: number };
/** Duration of a query, in milliseconds. */
let roundTrip: number;
let away: boolean;
let alarms: string[];

beforeEach(() => {
  passed = 0;
  wrong = { store: 0, machine: 0 };
  roundTrip = 2;
  away = false;
  alarms = [];
});

async function open(): Promise<StoreClock> {
  const clock = await StoreClock.open({
    queryStoreTime: async () => {
      if (away) throw new Error('away');
      passed += roundTrip / 2;
      const now = START + passed + wrong.store;
      passed += roundTrip / 2;
      return now;
    },
    maxSkewMs: MINUTE,
    reportError: (problem) => alarms.push(problem),
    getMachineTime: () => START + passed + wrong.machine,
    getMonotonicMs: () => 1_000 + passed,
  });
  clock.close(); // stops its timer: the tests call `synchronize`
  return clock;
}

const sinceStart = (clock: StoreClock) => clock.nowMs() - START - passed;

test('the time is that of the store, even with an incorrect clock of the host', async () => {
  wrong.machine = -20 * MINUTE;
  const clock = await open();
  passed += MINUTE;
  expect(sinceStart(clock)).toBe(0);
  expect(alarms).toEqual(["this host's clock is -1200000 ms ahead of the store's"]);
});

describe('a difference between the clocks of host and store', () => {
  test.each([
    ['small', 1_500, true, 0],
    ['large', 30_000, true, 1],
    ['above the limit', MINUTE + 10, false, 1],
    ['negative, above the limit', -MINUTE - 10, false, 1],
  ])('is reported if large, and makes the time unreliable above the limit: %s', async (_, machine, isSure, alarmed) => {
    wrong.machine = machine;
    const clock = await open();
    await clock.synchronize();
    expect([clock.skewMs, clock.isReliable(), alarms.length]).toEqual([machine, isSure, alarmed]);
  });

  test('is reported when it becomes large and when it is small again, and not in between', async () => {
    const clock = await open();
    for (const machine of [5_000, 6_000, 5_500, 0, 1_000]) {
      wrong.machine = machine;
      await clock.synchronize();
    }
    expect(alarms).toEqual([
      "this host's clock is 5000 ms ahead of the store's",
      "this host's clock agrees with the store's again",
    ]);
  });
});

test('a slow response of the store does not change an offset that can still be correct', async () => {
  const clock = await open();
  for (roundTrip of [4_000, 300, 9_000]) await clock.synchronize();
  expect([sinceStart(clock), alarms]).toEqual([0, []]);
});

test('the time advances while the store is unavailable', async () => {
  const clock = await open();
  away = true;
  await expect(clock.synchronize()).rejects.toThrow('away');
  passed += MINUTE;
  expect(sinceStart(clock)).toBe(0);
});

test('a process that is far ahead of the store is unreliable, and reliable once the store has caught up', async () => {
  const clock = await open();
  wrong.store = 60 * MINUTE;
  await clock.synchronize();
  const ahead = clock.nowMs();
  wrong.store = 0;
  await clock.synchronize();
  expect([clock.skewMs, clock.nowMs(), clock.isReliable()]).toEqual([0, ahead, false]);
  passed += 60 * MINUTE;
  expect(clock.isReliable()).toBe(true);
});

test("a jump of the store's clock is reported, and the time does not go back", async () => {
  const clock = await open();
  const before = clock.nowMs();
  wrong.store = -10_000;
  await clock.synchronize();
  expect(clock.nowMs()).toBe(before);
  passed += 10_000 + 5;
  expect(clock.nowMs() - before).toBeLessThan(10);
  expect(alarms).toEqual([
    "the store's clock has jumped by -10000 ms",
    "this host's clock is 10000 ms ahead of the store's",
  ]);
});
