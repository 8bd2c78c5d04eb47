import { mock } from 'node:test';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { waitForDrain } from './drain.ts';

let lines: [string, object][];
const record = (level: string) => (fields: object) => void lines.push([level, fields]);
const options = {
  log: { info: record('info'), warn: record('warn') } as never,
  limitMs: 25_000,
  describe: () => ({ requests: 3 }),
};
beforeEach(() => {
  lines = [];
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
});
afterEach(() => mock.timers.reset());

/** Advances the mocked timers, and lets everything run that they resolve. */
async function advance(milliseconds: number): Promise<void> {
  for (const step of [milliseconds, 0]) {
    mock.timers.tick(step);
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }
}

test('a drain that waits says for what every 10 s, and ends at its limit with what is left', async () => {
  const draining = waitForDrain(new Promise(() => {}), options);
  await advance(24_999);
  expect(lines).toEqual([
    ['info', { requests: 3 }],
    ['info', { requests: 3 }],
  ]);
  await advance(1);
  expect(await draining).toBe(false);
  expect(lines.slice(2)).toEqual([['warn', { requests: 3 }]]);
});

test('a drain ends with its work, and logs nothing if that is soon', async () => {
  expect(await waitForDrain(Promise.resolve(), options)).toBe(true);
  expect(lines).toEqual([]);
});
