import { mock } from 'node:test';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { PollInterval } from './poll-interval.ts';

describe('the poll interval of the log', () => {
  const { signal } = new AbortController();
  let pace: PollInterval;
  let turns: number[];

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    pace = new PollInterval(() => Date.now());
    turns = [];
  });
  afterEach(() => {
    mock.timers.reset();
  });

  const page = (position: bigint, full = false) => pace.record({ events: [], position, isFull: full });

  /** Polls repeatedly after a position, without new events. */
  async function look(after: bigint, times: number): Promise<void> {
    for (let n = 0; n < times; n++) {
      await pace.waitUntilDue(after, signal);
      turns.push(Date.now());
      page(after);
    }
  }

  /** Advances the clock by single milliseconds, and lets pending promises continue before each. */
  async function pass(milliseconds: number): Promise<void> {
    for (let n = 0; n < milliseconds; n++) {
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
      mock.timers.tick(1);
    }
  }

  test('is 100 ms if no caller waits', async () => {
    page(1n);
    const looking = look(1n, 3);
    await pass(250);
    await looking;
    expect(turns).toEqual([0, 100, 200]);
  });

  test('ends early for a waiting caller, and one poll serves all callers that arrive together', async () => {
    page(1n);
    const looking = look(1n, 4);
    await pass(50);
    for (let n = 0; n < 10; n++) pace.pollNow();
    await pass(5);
    for (let n = 0; n < 10; n++) pace.pollNow();
    await pass(200);
    await looking;
    expect(turns).toEqual([0, 50, 65, 165]);
  });

  test('is zero after a full page, and before the highest position that was read', async () => {
    page(9n, true);
    await look(5n, 2);
    await look(9n, 1);
    expect(turns).toEqual([0, 0, 0]);
  });

  test('ends when the signal of a subscriber aborts', async () => {
    page(1n);
    const gone = new AbortController();
    await pace.waitUntilDue(1n, signal);
    const waiting = pace.waitUntilDue(1n, gone.signal);
    gone.abort();
    await waiting;
  });
});
