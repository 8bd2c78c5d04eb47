import { beforeEach, describe, expect, test } from '@jest/globals';
import { StoreUnavailableError } from '#kernel';
import type { ProcessPresence } from '../../../foundation/src/process-presence.ts';

type PresentProcess = Pick<ProcessPresence, 'id' | 'getProcessId' | 'isDatabaseWritable' | 'close'>;

/** What the tests need of an adapter of the presence of processes. Heartbeats are sent only when a test says so. */
export interface PresenceTestbed {
  join(): Promise<PresentProcess>;
  findStaleProcesses(): Promise<readonly string[]>;
  /** Lets each process send a heartbeat, and waits until `condition` is met. */
  sendHeartbeats(condition: () => Promise<boolean>): Promise<void>;
  /** Ends the connection of a process to the database, which nobody has noticed yet. */
  disconnect(processId: string): Promise<void>;
  /**
   * Lets the heartbeats of a process fail until the returned function is called, and lets one fail before this function
   * returns.
   */
  interruptHeartbeats(processId: string): Promise<() => Promise<void>>;
  /** Lets the row of a process whose heartbeats fail expire by the clocks of the process and of the database. */
  expire(processId: string): Promise<void>;
  /** Lets more than a day pass in the database since the row of a process expired. */
  age(processId: string): Promise<void>;
  /** Returns whether the table has a row of the process. */
  hasRow(processId: string): Promise<boolean>;
}

/** Tests that every adapter of the presence of processes must pass. */
export function presenceContract(adapter: string, open: () => Promise<PresenceTestbed>): void {
  describe(`${adapter}: a process`, () => {
    let testbed: PresenceTestbed;
    beforeEach(async () => {
      testbed = await open();
    });
    const countStale = async () => (await testbed.findStaleProcesses()).length;

    test('is registered from the start under its own id', async () => {
      const [one, other] = [await testbed.join(), await testbed.join()];
      expect(one.getProcessId()).not.toBe(other.getProcessId());
      expect(await testbed.findStaleProcesses()).toEqual([]);
    });

    test('seems dead from the loss of its connection until it has another one', async () => {
      const [one, other] = [await testbed.join(), await testbed.join()];
      const id = one.getProcessId();
      await testbed.disconnect(id);
      expect(await testbed.findStaleProcesses()).toEqual([id]);
      expect(other.getProcessId()).not.toBe(id);
      await testbed.sendHeartbeats(async () => (await countStale()) === 0);
      expect(one.getProcessId()).toBe(id);
    });

    test('cannot own new holds after the expiry of its row until the row is renewed, under the same id', async () => {
      const one = await testbed.join();
      const { id } = one;
      const endInterruption = await testbed.interruptHeartbeats(id);
      // It may already seem dead: a heartbeat that fails may end the connection.
      expect([one.getProcessId(), one.isDatabaseWritable]).toEqual([id, false]);
      await testbed.expire(id);
      expect(() => one.getProcessId()).toThrow(StoreUnavailableError);
      expect(await testbed.findStaleProcesses()).toEqual([id]);
      await endInterruption();
      expect(() => one.getProcessId()).toThrow(StoreUnavailableError);
      await testbed.sendHeartbeats(async () => (await countStale()) === 0 && one.isDatabaseWritable);
      expect(one.getProcessId()).toBe(id);
    });

    test('seems dead as soon as its presence is closed', async () => {
      const one = await testbed.join();
      const id = one.getProcessId();
      await one.close();
      expect(await testbed.findStaleProcesses()).toEqual([id]);
    });

    test('is removed by the start of another process if it has been dead for more than a day', async () => {
      const [old, recent] = [await testbed.join(), await testbed.join()];
      await old.close();
      await testbed.age(old.id);
      await recent.close();
      expect(await testbed.hasRow(old.id)).toBe(true);
      await testbed.join();
      expect(await testbed.hasRow(old.id)).toBe(false);
      expect(await testbed.findStaleProcesses()).toEqual([recent.id]);
    });
  });
}
