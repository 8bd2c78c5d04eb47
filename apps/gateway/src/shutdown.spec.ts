import { mock } from 'node:test';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Shutdown } from './shutdown.ts';

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
});
afterEach(() => mock.timers.reset());

/** Advances the mocked timers, and lets everything run that they resolve. */
async function advance(milliseconds: number): Promise<void> {
  mock.timers.tick(milliseconds);
  await new Promise(setImmediate);
}

/** Settling takes as long as the event store rejects it, for example because its password was changed. */
test('a shutdown ends 10 s after its timeout even if requests cannot be settled, and logs which holds remain', async () => {
  const lines: object[] = [];
  let isWaiting = false;
  const shutdown = new Shutdown({
    settings: { drainDelayMs: 0, shutdownTimeoutMs: 12_000 },
    log: { info: () => {}, warn: (fields: object) => void lines.push(fields) },
    readiness: { isDraining: false },
    connections: { startDraining() {}, waitUntilIdle: async () => {}, countResponding: () => 0 },
    billing: {
      drain() {
        isWaiting = true;
        return new Promise(() => {});
      },
      runningHoldIds: ['hold-1', 'hold-2'],
    },
    host: { httpAdapter: { close: async () => {}, getHttpServer: () => ({ closeAllConnections() {} }) } },
  } as never);
  let hasEnded = false;
  void shutdown.beforeApplicationShutdown().then(() => {
    hasEnded = true;
  });
  while (!isWaiting) await new Promise(setImmediate); // after the drain delay
  await advance(12_000 + 9_999);
  expect(hasEnded).toBe(false);
  await advance(1);
  expect(hasEnded).toBe(true);
  expect(lines).toEqual([{ requests: 2, responses: 0, holds: ['hold-1', 'hold-2'] }]);
});
