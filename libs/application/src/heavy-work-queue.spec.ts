import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createTestRuntime } from '#testing';
import { replaceDelays } from '../../testing/src/replace-delays.ts';
import { HeavyWorkQueue } from './heavy-work-queue.ts';

/** The time moves only by work and by pauses. */
let nowMs: number;
let pauses: number[];
let restoreDelays: () => void;

beforeEach(() => {
  [nowMs, pauses] = [0, []];
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  restoreDelays = replaceDelays(async (milliseconds) => {
    pauses.push(milliseconds);
    nowMs += milliseconds;
    await nextTurn();
  });
});
afterEach(() => {
  restoreDelays();
  jest.restoreAllMocks();
});

function workFor(milliseconds: number): number {
  nowMs += milliseconds;
  return 1;
}

/** @returns the pauses after one step and after its body */
async function measurePauses(stepMs: number, bytes: number): Promise<number[]> {
  const queue = new HeavyWorkQueue(createTestRuntime());
  await queue.run('a', bytes, [() => workFor(stepMs)]);
  await queue.run('b', 0, []);
  return pauses.slice(0, 2);
}

const work = () => 1;

test('an owner with one body waits for one body of another owner, not for all of them', async () => {
  const queue = new HeavyWorkQueue(createTestRuntime());
  const order: string[] = [];
  const run = (owner: string) => queue.run(owner, 1, [work]).then(() => order.push(owner));
  await Promise.all([run('attacker'), run('attacker'), run('attacker'), run('attacker'), run('customer')]);
  expect(order.slice(0, 2)).toEqual(['attacker', 'customer']);
});

test('the pauses after a step and after its body are three times as long as the step', async () => {
  expect(await measurePauses(5, 0)).toEqual([15, 15]);
});

test('the pause after a body grows with its size', async () => {
  expect(await measurePauses(5, 1024 * 1024)).toEqual([15, 15 + 24]);
});

test('pauses grow faster than the duration of a step', async () => {
  expect(await measurePauses(30, 0)).toEqual([180, 180]);
});

test('a step that takes very long, because the host was suspended, has a limited pause', async () => {
  expect(await measurePauses(3000, 0)).toEqual([500, 500]);
});

/** @returns how long after a step the next body of another owner starts, and then the next body of the same owner */
async function measureRests(stepMs: number) {
  const queue = new HeavyWorkQueue(createTestRuntime());
  const startsAt: number[] = [];
  const stepEnd = nowMs + stepMs;
  const measure = () => startsAt.push(nowMs - stepEnd);
  await queue.run('a', 0, [() => workFor(stepMs)]);
  await queue.run('b', 0, [measure]);
  await queue.run('a', 0, [measure]);
  return startsAt;
}

test('after a long step, its owner rests for two hundred times the excess, and others do not', async () => {
  expect(await measureRests(15)).toEqual([90, 90]);
  expect(await measureRests(35)).toEqual([490, 4000]);
});

test('a rest is limited', async () => {
  expect(await measureRests(3000)).toEqual([1000, 10_000]);
});

test('each step gets the result of the one before it, in a turn of its own', async () => {
  let turn = 0;
  const countTurns = () => {
    turn++;
    timer = setImmediate(countTurns);
  };
  let timer = setImmediate(countTurns);
  const turns: number[] = [];
  const step = (input = 0): number => {
    turns.push(turn);
    return input + 1;
  };
  expect(await new HeavyWorkQueue(createTestRuntime()).run('a', 1, [step, step, step])).toBe(3);
  clearImmediate(timer);
  expect(new Set(turns).size).toBe(3);
});

test('an error reaches the owner of the work, and the next work runs', async () => {
  const queue = new HeavyWorkQueue(createTestRuntime());
  const fail = () => {
    throw new Error('broken');
  };
  await expect(queue.run('a', 1, [fail, work])).rejects.toThrow('broken');
  await expect(queue.run('a', 1, [work])).resolves.toBe(1);
});
