import { expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import { eventStoreContract } from '../contracts/event-store.ts';
import { sampleSize } from '../sample-cases.ts';
import { Chance } from './chance.ts';
import { describeFailure } from './describe-failure.ts';
import { FaultyEventStore, NO_STORE_FAULTS, StoreServer } from './faulty-event-store.ts';
import { createPlan, type Plan } from './plan.ts';
import { runSimulation } from './run-simulation.ts';
import { shrinkPlan } from './shrink.ts';
import { SimulatedProcess } from './simulated-process.ts';
import { SimulatedTime } from './simulated-time.ts';

const SEEDS = 100;

test(`${SEEDS} plans with faults break no rule`, async () => {
  for (let seed = 1; seed <= sampleSize(1_000, SEEDS); seed++) {
    const plan = createPlan(String(seed));
    const { violations } = await runSimulation(plan);
    if (violations.length > 0) throw new Error(await describeFailure(plan));
  }
});

test('the same plan gives the same events', async () => {
  const plans = ['3', '12', '77'].map(createPlan);
  const hashes: string[] = [];
  for (const plan of [...plans, ...plans]) hashes.push((await runSimulation(plan)).hash);
  expect(hashes.slice(3)).toEqual(hashes.slice(0, 3));
  expect(new Set(hashes).size).toBe(3);
});

test('a failing plan is reduced to the steps and faults that matter', async () => {
  const plan: Plan = { ...createPlan('5'), storeFaults: { ...NO_STORE_FAULTS, lag: 0.1, slow: 0.1 } };
  const important = plan.steps.filter(({ step }) => step === 'open' || step === 'kill').slice(0, 3);
  const stillFails = async ({ steps, storeFaults }: Plan) =>
    storeFaults.lag > 0 && important.every((step) => steps.includes(step));
  const shrunk = await shrinkPlan(plan, stillFails);
  expect(shrunk.steps).toEqual(important);
  expect(shrunk.storeFaults).toEqual({ ...NO_STORE_FAULTS, lag: 0.1 });
  expect(shrunk.outages).toEqual([]);
});

test('timers run in the order of their time, then of their start, unless they are stopped', async () => {
  const time = new SimulatedTime();
  const runs: string[] = [];
  const start = (name: string, delayMs: number) => time.startTimer(delayMs, () => runs.push(`${name} ${time.nowMs}`));
  for (const [name, delayMs] of [
    ['d', 30],
    ['a', 10],
    ['b', 10],
    ['e', 40],
    ['c', 20],
  ] as const)
    start(name, delayMs);
  start('stopped', 15)();
  time.startTimer(20, () => start('nested', 5));
  await time.run(30);
  expect(runs).toEqual(['a 10', 'b 10', 'c 20', 'nested 25', 'd 30']);
  expect(time.nowMs).toBe(30);
});

test('a killed process gets nothing any more, and a suspended one gets everything when it is resumed', async () => {
  const time = new SimulatedTime();
  const options = { time, chance: new Chance('1'), startMs: 0, reportError: () => {} };
  const [killed, suspended] = [new SimulatedProcess('killed', options), new SimulatedProcess('suspended', options)];
  const runs: string[] = [];
  for (const process of [killed, suspended]) {
    process.runtime.startTimer(10, () => runs.push(`${process.name} timer`));
    void process.receive(Promise.resolve(), 20).then(() => runs.push(`${process.name} response`));
  }
  await time.run(5);
  killed.kill();
  suspended.suspend();
  await time.run(50);
  expect(runs).toEqual([]);
  suspended.resume();
  await time.run(60);
  expect(runs).toEqual(['suspended timer', 'suspended response']);
});

test('the heartbeat gap of a process is the longest time between heartbeats while a hold was open', () => {
  const options = { time: new SimulatedTime(), chance: new Chance('1'), startMs: 0, reportError: () => {} };
  const process = new SimulatedProcess('gateway', options);
  process.heartbeatsMs.push(0, 2_500, 22_500, 25_000);
  expect(process.getHeartbeatGapMs(1_000, 24_000)).toBe(20_000);
  expect(process.getHeartbeatGapMs(22_500, 30_000)).toBe(5_000);
  process.kill();
  expect(process.getHeartbeatGapMs(22_500, 30_000)).toBe(Number.POSITIVE_INFINITY);
});

/** Lets simulated time pass while the contract waits. */
eventStoreContract('a faulty store without faults', async () => {
  const time = new SimulatedTime(Number.POSITIVE_INFINITY);
  const chance = new Chance('1');
  const inner = new MemoryEventStore(['account-']);
  const process = new SimulatedProcess('reader', { time, chance, startMs: 0, reportError: () => {} });
  const options = { time, chance, getFaults: () => NO_STORE_FAULTS, outages: [] };
  const server = new StoreServer(inner);
  const { maxAppendBytes } = inner;
  const open = () =>
    Object.assign(new FaultyEventStore(server, process, options), { maxAppendBytes, close: async () => {} });
  let isOpen = true;
  const passing = (async () => {
    while (isOpen) await time.run(time.nowMs + 20);
  })();
  const close = async () => {
    isOpen = false;
    await passing;
  };
  return { store: open(), openAnother: open, prefix: 'account-', close };
});
