import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { StoredEvent } from './message.ts';
import { WaitingStreamIndex } from './waiting-stream-index.ts';
import type { WorkflowSchedule } from './workflow.ts';

const event = { stream: 'account-a' } as StoredEvent;

test('a failed load of the waiting streams is an error of findAffected only, and the next call loads them', async () => {
  const loads = [Promise.reject(new Error('the database is unavailable')), Promise.resolve(['a'])];
  const schedule = { listWaiting: () => loads.shift() } as unknown as WorkflowSchedule;
  const index = new WaitingStreamIndex({ name: 'test', findAffectedId: () => 'a' }, schedule);
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', onUnhandled);
  try {
    const affected = index.findAffected([event], []);
    index.reschedule({ id: 'a', at: null, woken: 0, failures: 0, ahead: false });
    await expect(affected).rejects.toThrow('the database is unavailable');
    await setImmediate();
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  expect(await index.findAffected([event], [])).toEqual(['a']);
});
