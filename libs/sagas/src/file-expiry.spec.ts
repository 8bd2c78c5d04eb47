import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import type { FileStore } from '#application';
import { expireFiles } from '#sagas';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { replaceDelays } from '../../testing/src/replace-delays.ts';

const MINUTE = 60_000;
const time = new FakeClock('2026-11-22T12:10:00.000Z');
afterAll(replaceDelays(time.delay));

let stop: AbortController;
let running: Promise<void>;
let alarms: string[];
let begun: number;

beforeEach(() => {
  stop = new AbortController();
  alarms = [];
  begun = time.nowMs();
});
afterEach(async () => {
  stop.abort();
  await running;
});

/** Fakes only the method that the sweep calls. What a file store deletes is covered by its contract tests. */
function start(removeExpired: FileStore['removeExpired']): void {
  const files = { removeExpired } as FileStore;
  running = expireFiles(
    { files, clock: time, runtime: { ...time.timers, reportError: (problem) => void alarms.push(problem) } },
    stop.signal,
  );
}

const minutes = (at: number) => (at - begun) / MINUTE;

test('expired files are deleted every five minutes', async () => {
  const looks: number[] = [];
  start(async (now) => looks.push(minutes(now)));
  await time.advance(15 * MINUTE);
  expect(looks).toEqual([0, 5, 10, 15]);
  expect(alarms).toEqual([]);
});

test('a failed deletion is retried after 30 seconds', async () => {
  const looks: number[] = [];
  start(async (now) => {
    looks.push(minutes(now));
    if (looks.length < 3) throw new Error('away');
    return 0;
  });
  await time.advance(7 * MINUTE);
  expect(looks).toEqual([0, 0.5, 1, 6]);
  expect(alarms).toEqual(Array(2).fill('expired files could not be deleted; retrying'));
});
