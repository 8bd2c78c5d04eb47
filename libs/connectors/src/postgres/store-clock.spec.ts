import { beforeEach, describe, expect, test } from '@jest/globals';
import { StoreClock } from '#connectors';

const MINUTE = 60_000;
const START = Date.parse('2026-11-22T12:00:00.000Z');

/** True time, how far the two clocks are from it, and how long a question takes. */
let passed: number;
let wrong: { store: number; machine: number };
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
  clock.close(); // looks when it is told to
  return clock;
}

const sinceStart = (clock: StoreClock) => clock.nowMs() - START - passed;

test('what is decided by is the time of the store, however wrong the clock of the machine is', async () => {
  wrong.machine = -20 * MINUTE;
  const clock = await open();
  passed += MINUTE;
  expect(sinceStart(clock)).toBe(0);
  expect(alarms).toEqual(["this machine's clock is -1200000 ms ahead of the store's"]);
});

describe('a machine whose clock is not that of the store', () => {
  test.each([
    ['by what happens', 1_500, true, 0],
    ['noticeably', 30_000, true, 1],
    ['by more than may be', MINUTE + 10, false, 1],
    ['by as much the other way', -MINUTE - 10, false, 1],
  ])('%s is known for it', async (_, machine, isSure, alarmed) => {
    wrong.machine = machine;
    const clock = await open();
    await clock.synchronize();
    expect([clock.skewMs, clock.isReliable(), alarms.length]).toEqual([machine, isSure, alarmed]);
  });

  test('raises an alarm when it goes wrong and when it is right again, and none between', async () => {
    const clock = await open();
    for (const machine of [5_000, 6_000, 5_500, 0, 1_000]) {
      wrong.machine = machine;
      await clock.synchronize();
    }
    expect(alarms).toEqual([
      "this machine's clock is 5000 ms ahead of the store's",
      "this machine's clock agrees with the store's again",
    ]);
  });
});

test('a slow answer of the store changes nothing, since it may mean what is known', async () => {
  const clock = await open();
  for (roundTrip of [4_000, 300, 9_000]) await clock.synchronize();
  expect([sinceStart(clock), alarms]).toEqual([0, []]);
});

test('time goes on while the store is away', async () => {
  const clock = await open();
  away = true;
  await expect(clock.synchronize()).rejects.toThrow('away');
  passed += MINUTE;
  expect(sinceStart(clock)).toBe(0);
});

test('a process that a jump of the store has left ahead ends nothing by its time until the store has caught up', async () => {
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

test('when the clock of the store jumps, that is an alarm, and time never goes back', async () => {
  const clock = await open();
  const before = clock.nowMs();
  wrong.store = -10_000;
  await clock.synchronize();
  expect(clock.nowMs()).toBe(before);
  passed += 10_000 + 5;
  expect(clock.nowMs() - before).toBeLessThan(10);
  expect(alarms).toEqual([
    "the store's clock has jumped by -10000 ms",
    "this machine's clock is 10000 ms ahead of the store's",
  ]);
});
