import assert from 'node:assert';
import { describe, expect, test } from '@jest/globals';
import {
  calculateBackoffMs,
  isProgrammingError,
  Rejection,
  type RetryOptions,
  retry,
  retryWhileUnavailable,
  StoreUnavailableError,
} from '#kernel';

const BACKOFF = { minMs: 100, maxMs: 1_000 };

describe('a wait', () => {
  test('doubles up to its maximum, or grows by another factor', () => {
    const list = (backoff: object) =>
      [0, 1, 2, 3, 4, 5_000].map((failures) =>
        calculateBackoffMs({ ...BACKOFF, chance: () => 0, ...backoff }, failures),
      );
    expect(list({})).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(list({ factor: 1.5 })).toEqual([100, 150, 225, 338, 506, 1_000]);
    expect(list({ minMs: 700, maxMs: 700 })).toEqual(Array(6).fill(700));
  });

  test('is between half of its upper bound and the bound', () => {
    expect(calculateBackoffMs({ ...BACKOFF, chance: () => 0.5 }, 2)).toBe(300);
    expect(calculateBackoffMs({ ...BACKOFF, chance: () => 1 - Number.EPSILON }, 2)).toBe(200);
    const waits = Array.from({ length: 100 }, () => calculateBackoffMs({ ...BACKOFF, chance: Math.random }, 2));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(200);
    expect(Math.max(...waits)).toBeLessThanOrEqual(400);
    expect(new Set(waits).size).toBeGreaterThan(1);
  });
});

/** Retries something that fails `times` times. Returns its result, the waits, and the errors that were retried. */
async function retryFailing(times: number, options: Partial<RetryOptions> = {}) {
  const waits: number[] = [];
  const retried: unknown[] = [];
  const attempts: number[] = [];
  const attempt = async (failures: number) => {
    attempts.push(failures);
    if (failures < times) throw new Error(`failure ${failures + 1}`);
    return 'done';
  };
  const result = await retry(attempt, {
    ...BACKOFF,
    chance: () => 0,
    sleep: async (milliseconds) => void waits.push(milliseconds),
    shouldRetry: () => true,
    onRetry: (error, failure) => void retried.push([(error as Error).message, failure]),
    ...options,
  }).catch((error) => error.message);
  return { result, waits, retried, attempts };
}

describe('retry', () => {
  test('repeats an attempt until it succeeds, and says what it repeats', async () => {
    expect(await retryFailing(2)).toEqual({
      result: 'done',
      waits: [100, 200],
      retried: [
        ['failure 1', { attempt: 1, waitMs: 100 }],
        ['failure 2', { attempt: 2, waitMs: 200 }],
      ],
      attempts: [0, 1, 2],
    });
  });

  test('ends with an error that is not to be retried', async () => {
    const { result, attempts } = await retryFailing(9, { shouldRetry: (_, { attempt }) => attempt < 3 });
    expect([result, attempts]).toEqual(['failure 3', [0, 1, 2]]);
  });

  test.each([
    [0, []],
    [1, [100]],
    [2, [100]],
    [3, [100, 200]],
  ])('ends if the result is no longer needed at check %d', async (neededChecks, expectedWaits) => {
    let checks = 0;
    const { result, waits } = await retryFailing(9, { shouldContinue: () => checks++ < neededChecks });
    expect([result, waits]).toEqual([`failure ${Math.floor(neededChecks / 2) + 1}`, expectedWaits]);
  });

  test('ends with the error of a wait that is interrupted', async () => {
    const sleep = () => Promise.reject(new Error('aborted'));
    expect(await retryFailing(9, { sleep })).toMatchObject({ result: 'aborted', attempts: [0] });
  });
});

test('a write is retried and reported while the store is unavailable, and no longer', async () => {
  const [problems, waits]: [string[], number[]] = [[], []];
  const runtime = {
    sleep: async (milliseconds: number) => void waits.push(milliseconds),
    reportError: (problem: string) => void problems.push(problem),
    chance: () => 0,
  };
  const write = async (failures: Error[]) => {
    const error = failures.shift();
    if (error) throw error;
    return 'stored';
  };
  const run = (failures: Error[], shouldRetry = () => true) =>
    retryWhileUnavailable(() => write(failures), { runtime, problem: 'not stored', shouldRetry });
  expect(await run(Array.from({ length: 5 }, () => new StoreUnavailableError('away')))).toBe('stored');
  expect(waits).toEqual([250, 500, 1_000, 2_000, 2_000]);
  expect(problems).toEqual(Array(5).fill('not stored'));
  await expect(run([new TypeError('x is not a function')])).rejects.toThrow(TypeError);
  await expect(run([new StoreUnavailableError('away')], () => false)).rejects.toThrow(StoreUnavailableError);
  expect(problems).toHaveLength(5);
});

test('programming errors differ from errors of the environment', () => {
  const thrownBy = (action: () => unknown): unknown => {
    try {
      return action();
    } catch (error) {
      return error;
    }
  };
  const mistakes = [
    () => (undefined as never as { x: { y: 1 } }).x.y,
    () => new Array(-1),
    () => JSON.parse('{'),
    () => assert.equal(1, 2),
    () => {
      throw new ReferenceError('x is not defined');
    },
  ];
  expect(mistakes.map((action) => isProgrammingError(thrownBy(action)))).toEqual(mistakes.map(() => true));
  const others = [new Error('permission denied'), new StoreUnavailableError('away'), new Rejection('x', 'no'), 'text'];
  expect(others.map(isProgrammingError)).toEqual(others.map(() => false));
});
