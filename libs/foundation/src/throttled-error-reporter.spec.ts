import { beforeEach, expect, test } from '@jest/globals';
import { createThrottledReporter, REPEAT_INTERVAL_MS } from './throttled-error-reporter.ts';

let logged: [problem: string, error: unknown][];
let due: Set<{ at: number; done: () => void }>;
let now: number;

beforeEach(() => {
  [logged, due, now] = [[], new Set(), 0];
});

const open = () =>
  createThrottledReporter(
    (...line) => logged.push(line),
    (milliseconds, done) => {
      const timer = { at: now + milliseconds, done };
      due.add(timer);
      return () => due.delete(timer);
    },
  );

function pass(milliseconds: number): void {
  now += milliseconds;
  for (const timer of [...due]) {
    if (timer.at > now || !due.delete(timer)) continue;
    timer.done();
  }
}

const lines = () => logged.splice(0).map(([problem]) => problem);

test('the reporter logs a repeated problem at once, then once a minute with the number of repetitions', () => {
  const alarm = open();
  const last = new Error('denied');
  for (let i = 0; i < 312; i++) alarm('balances could not apply a batch', new Error('denied'));
  alarm('balances could not apply a batch', last);
  expect(lines()).toEqual(['balances could not apply a batch']);
  pass(REPEAT_INTERVAL_MS);
  expect(logged).toEqual([['balances could not apply a batch (and 312 times more in the last minute)', last]]);
  lines();
  alarm('balances could not apply a batch', last);
  pass(REPEAT_INTERVAL_MS);
  expect(lines()).toEqual(['balances could not apply a batch (and once more in the last minute)']);
});

test('the reporter logs a problem again at once after a minute without it', () => {
  const alarm = open();
  alarm('a read failed', undefined);
  pass(REPEAT_INTERVAL_MS);
  alarm('a read failed', undefined);
  expect(lines()).toEqual(['a read failed', 'a read failed']);
});

test('the reporter logs a different problem, or a different reason in the error or its causes, at once', () => {
  const alarm = open();
  for (let i = 0; i < 2; i++) {
    alarm('a read failed', 'late');
    alarm('a write failed', 'late');
    alarm('a read failed', new Error('no answer', { cause: new Error('denied') }));
    alarm('a read failed', new Error('no answer', { cause: new Error('not ready') }));
  }
  expect(lines()).toEqual(['a read failed', 'a write failed', 'a read failed', 'a read failed']);
});

test('the reporter stores a limited number of problems, and logs the repetitions of those that it removes', () => {
  const alarm = open();
  alarm('first', undefined);
  for (let i = 0; i < 3; i++) alarm('first', undefined);
  for (let i = 0; i < 10_000; i++) alarm(`account-${i} cannot be used`, undefined);
  expect(due.size).toBeLessThanOrEqual(200);
  expect(lines()).toContain('first (and 3 times more in the last minute)');
  pass(REPEAT_INTERVAL_MS);
  expect([due.size, lines()]).toEqual([0, []]);
});
