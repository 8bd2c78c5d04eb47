import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { ProgressRecorder } from '#testing';
import { startProgress } from './progress.ts';
import { trackProgress } from './track-progress.ts';

const TASK = { name: 'verify', total: 500_000, unit: 'events' };
const CLEAR_LINE = '\u001b[2K';

function createOutput(isTTY: boolean, columns = 120) {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY, columns });
  const clock = { ms: 0 };
  return { output: { stream, nowMs: () => clock.ms }, clock, read: (): string => stream.read() ?? '' };
}

test('a terminal shows a bar with the rate and the time left, and nothing of it when the work is finished', () => {
  const { output, clock, read } = createOutput(true);
  const progress = startProgress(TASK, output);
  try {
    expect(read()).toContain('verify: 0 of 500000 events [--------------------]');
    clock.ms = 30_000;
    progress.update(125_000);
  } finally {
    progress.finish();
  }
  const text = read();
  expect(text).toMatch(/verify: 125000 of 500000 events, 4200 per second, \d+ (s|min) left \[=====-{15}\]/);
  expect(text.endsWith(CLEAR_LINE)).toBe(true);
});

test.each([
  [32, 'verify: 0 of 500000 events [---]'],
  [28, 'verify: 0 of 500000 events'],
  [20, 'verify: 0 of 500000 '],
])('a terminal with %i columns shows one line', (columns, line) => {
  const { output, read } = createOutput(true, columns);
  const progress = startProgress(TASK, output);
  const text = read();
  progress.finish();
  expect(text.split(String.fromCharCode(27))).toEqual(['', '7', `[1G${line}`, '[0K']);
});

test('a bar changes no mode of the terminal, which an interrupted process could not restore', () => {
  const { output, read } = createOutput(true);
  startProgress(TASK, output).finish();
  expect(read()).not.toContain('\u001b[?');
});

test('elsewhere a line is printed every 30 s', () => {
  const { output, clock, read } = createOutput(false);
  const progress = startProgress(TASK, output);
  for (clock.ms = 1_000; clock.ms <= 70_000; clock.ms += 1_000) progress.update(clock.ms * 5);
  progress.finish();
  expect(read()).toBe(
    'verify: 150000 of 500000 events, 5000 per second, 2 min left\n' +
      'verify: 300000 of 500000 events, 5000 per second, 40 s left\n',
  );
});

test('elsewhere work that takes less than 30 s prints nothing', () => {
  const { output, clock, read } = createOutput(false);
  const progress = startProgress(TASK, output);
  clock.ms = 29_999;
  progress.update(TASK.total);
  clock.ms = 60_000;
  progress.finish();
  expect(read()).toBe('');
});

test.each([
  [0, 0, 'verify: 0 of 500000 events'],
  [1, 3_600_000, 'verify: 1 of 500000 events, 0.00028 per second, 499999 h 0 min left'],
  [600_000, 30_000, 'verify: 600000 of 600000 events, 20000 per second, 0 s left'],
])('a line is correct for %i events in %i ms', (done, elapsedMs, line) => {
  const { output, clock, read } = createOutput(false);
  const progress = startProgress(TASK, output);
  clock.ms = Math.max(elapsedMs, 30_000);
  progress.update(done);
  expect(read()).toBe(`${line}\n`);
});

test('the progress finishes when the work fails', async () => {
  const { tasks, start } = new ProgressRecorder();
  const work = async () => {
    const parts = (async function* () {
      yield* [1, 2, 3];
    })();
    for await (const part of trackProgress(parts, TASK, (number) => number * 10, start))
      if (part === 3) throw new Error('failed');
  };
  await expect(work()).rejects.toThrow('failed');
  expect(tasks).toEqual([{ ...TASK, done: 20, isFinished: true }]);
});
