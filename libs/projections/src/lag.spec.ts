import { expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import { type ProjectionProgress, ProjectorLag } from '#projections';

const fact = () => ({ id: crypto.randomUUID(), type: 'Happened', data: {}, metadata: {} });
const appliedUpTo = (position: bigint) =>
  ({ loadAppliedPosition: async () => position }) as unknown as ProjectionProgress;

test('the projector lags until the last append is applied, even if appends follow each other closely', async () => {
  const lag = new ProjectorLag();
  const store = lag.withLagTracking(new MemoryEventStore());
  expect(await lag.measureMs(appliedUpTo(-1n), [])).toBe(0);
  for (let revision = -1; revision < 4; revision++) await store.append('s', revision, [fact()]);
  expect(await lag.measureMs(appliedUpTo(3n), [])).toBeGreaterThan(0);
  expect(await lag.measureMs(appliedUpTo(4n), [])).toBe(0);
});
