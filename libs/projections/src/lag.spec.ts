import { expect, jest, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import { type ProjectionProgress, ProjectorLag } from '#projections';

const fact = () => ({ id: crypto.randomUUID(), type: 'Happened', data: {}, metadata: {} });
const appliedUpTo = (position: bigint) =>
  ({ loadAppliedPosition: async () => position }) as unknown as ProjectionProgress;

test('the lag includes appends of other processes, and is unknown when the end of the log is not read any more', async () => {
  const now = jest.spyOn(performance, 'now').mockReturnValue(0);
  const lag = new ProjectorLag();
  const advanceTo = (milliseconds: number) => now.mockReturnValue(milliseconds);
  await lag.recordEnd({ readLastPosition: async () => 4n });
  advanceTo(3_000);
  await lag.recordEnd({ readLastPosition: async () => 4n });
  expect(await lag.measureMs(appliedUpTo(3n), [])).toBe(3_000);
  expect(await lag.measureMs(appliedUpTo(4n), [])).toBe(0);
  advanceTo(8_001);
  await expect(lag.measureMs(appliedUpTo(4n), [])).rejects.toThrow('the lag is unknown');
  now.mockRestore();
});

test('the projector lags until the last append is applied, even if appends follow each other closely', async () => {
  const lag = new ProjectorLag();
  const store = lag.withLagTracking(new MemoryEventStore());
  expect(await lag.measureMs(appliedUpTo(-1n), [])).toBe(0);
  for (let revision = -1; revision < 4; revision++) await store.append('s', revision, [fact()]);
  expect(await lag.measureMs(appliedUpTo(3n), [])).toBeGreaterThan(0);
  expect(await lag.measureMs(appliedUpTo(4n), [])).toBe(0);
});
