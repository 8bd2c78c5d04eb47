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

type Overrides = Partial<Record<'billing' | 'payers', object>>;

/** Starts a shutdown, and returns its state. */
async function start({ billing, payers }: Overrides) {
  const lines: object[] = [];
  let isWaiting = false;
  const shutdown = new Shutdown({
    settings: { drainDelayMs: 0, shutdownTimeoutMs: 12_000 },
    log: { info: () => {}, warn: (fields: object) => void lines.push(fields) },
    readiness: { isDraining: false },
    connections: {
      startDraining() {},
      waitUntilIdle: async () => {
        isWaiting = true;
      },
      countResponding: () => 0,
    },
    billing: { drain: async () => {}, runningHoldIds: [], ...billing },
    payers: { pendingWrites: { waitUntilIdle: async () => {}, holdIds: [], ...payers } },
    host: { httpAdapter: { close: async () => {}, getHttpServer: () => ({ closeAllConnections() {} }) } },
  } as never);
  const state = { hasEnded: false, lines };
  void shutdown.beforeApplicationShutdown().then(() => {
    state.hasEnded = true;
  });
  while (!isWaiting) await new Promise(setImmediate); // after the drain delay
  return state;
}

const neverEnds = () => new Promise(() => {});

/** Settling takes as long as the event store rejects it, for example because its password was changed. */
test('a shutdown ends 10 s after its timeout even if requests cannot be settled, and logs which holds remain', async () => {
  const state = await start({ billing: { drain: neverEnds, runningHoldIds: ['hold-1', 'hold-2'] } });
  await advance(12_000 + 9_999);
  expect(state.hasEnded).toBe(false);
  await advance(1);
  expect(state.hasEnded).toBe(true);
  expect(state.lines).toEqual([{ requests: 2, responses: 0, holds: ['hold-1', 'hold-2'] }]);
});

test('a shutdown waits for charges that are not confirmed, at most 15 s, and then logs their holds', async () => {
  const writes = Promise.withResolvers<void>();
  const waiting = await start({ payers: { waitUntilIdle: () => writes.promise } });
  await advance(14_000);
  expect(waiting.hasEnded).toBe(false);
  writes.resolve();
  await advance(0);
  expect(waiting).toEqual({ hasEnded: true, lines: [] });

  const tooLong = await start({ payers: { waitUntilIdle: neverEnds, holdIds: ['hold-3'] } });
  await advance(15_000);
  expect(tooLong).toEqual({ hasEnded: true, lines: [{ unrecorded_holds: ['hold-3'] }] });
});
