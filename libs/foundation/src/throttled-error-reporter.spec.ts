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
  const { report } = open();
  const last = new Error('denied');
  for (let i = 0; i < 312; i++) report('balances could not apply a batch', new Error('denied'));
  report('balances could not apply a batch', last);
  expect(lines()).toEqual(['balances could not apply a batch']);
  pass(REPEAT_INTERVAL_MS);
  expect(logged).toEqual([['balances could not apply a batch (and 312 times more in the last minute)', last]]);
  lines();
  report('balances could not apply a batch', last);
  pass(REPEAT_INTERVAL_MS);
  expect(lines()).toEqual(['balances could not apply a batch (and once more in the last minute)']);
});

test('the reporter logs a problem again at once after a minute without it', () => {
  const { report } = open();
  report('a read failed', undefined);
  pass(REPEAT_INTERVAL_MS);
  report('a read failed', undefined);
  expect(lines()).toEqual(['a read failed', 'a read failed']);
});

test('the reporter logs a different problem, or a different reason in the error or its causes, at once', () => {
  const { report } = open();
  for (let i = 0; i < 2; i++) {
    report('a read failed', 'late');
    report('a write failed', 'late');
    report('a read failed', new Error('no answer', { cause: new Error('denied') }));
    report('a read failed', new Error('no answer', { cause: new Error('not ready') }));
  }
  expect(lines()).toEqual(['a read failed', 'a write failed', 'a read failed', 'a read failed']);
});

test('the reporter stores a limited number of problems, and logs the repetitions of those that it removes', () => {
  const { report } = open();
  report('first', undefined);
  for (let i = 0; i < 3; i++) report('first', undefined);
  for (let i = 0; i < 10_000; i++) report(`account-${i} cannot be used`, undefined);
  expect(due.size).toBeLessThanOrEqual(200);
  expect(lines()).toContain('first (and 3 times more in the last minute)');
  pass(REPEAT_INTERVAL_MS);
  expect([due.size, lines()]).toEqual([0, []]);
});

test('the reporter logs no reminders once it is closed, only new problems', () => {
  const { report, close } = open();
  for (let i = 0; i < 3; i++) report('a read failed', undefined);
  close();
  report('a write failed', undefined);
  pass(REPEAT_INTERVAL_MS);
  expect([due.size, lines()]).toEqual([0, ['a read failed', 'a write failed']]);
});
