import { beforeEach, describe, expect, test } from '@jest/globals';
import { StoreUnavailableError } from '#kernel';
import { type PresenceTable, ProcessPresence } from '../../../foundation/src/process-presence.ts';
import { presenceContract } from '../contracts/presence.ts';
import { Chance } from './chance.ts';
import { MemoryPresence } from './memory-presence.ts';
import { SimulatedProcess } from './simulated-process.ts';
import { SimulatedTime } from './simulated-time.ts';

const DURATION_MS = 10_000;
const HEARTBEAT_MS = 2_500;
/** How long a process relies on its row after a heartbeat. */
const TRUSTED_MS = 9_500;
const HOUR_MS = 3_600_000;

let time: SimulatedTime;
let presence: MemoryPresence;
let isDatabaseAvailable: boolean;
/** By process id. */
let processes: Map<string, SimulatedProcess>;
beforeEach(() => {
  time = new SimulatedTime();
  isDatabaseAvailable = true;
  processes = new Map();
  presence = new MemoryPresence(() => time.nowMs);
});

async function join(): Promise<ProcessPresence> {
  const id = `gateway-${processes.size}`;
  const process = new SimulatedProcess(id, { time, chance: new Chance('1'), startMs: 0, reportError: () => {} });
  processes.set(id, process);
  const table = presence.open(process);
  const faultyTable: PresenceTable = {
    ...table,
    record: async (...args) => {
      if (!isDatabaseAvailable) throw new Error('the database does not respond');
      await table.record(...args);
    },
  };
  return ProcessPresence.register(id, faultyTable, process.runtime, { reportError: () => {} });
}

const getProcess = (id: string) => processes.get(id) as SimulatedProcess;
const find = () => presence.findStaleProcesses();

presenceContract('in memory', async () => ({
  join,
  findStaleProcesses: find,
  sendHeartbeats: () => time.run(time.nowMs + HEARTBEAT_MS),
  disconnect: async (id) => presence.disconnect(getProcess(id)),
  interruptHeartbeats: async () => {
    isDatabaseAvailable = false;
    await time.run(time.nowMs + HEARTBEAT_MS);
    return async () => {
      isDatabaseAvailable = true;
    };
  },
  expire: () => time.run(time.nowMs + DURATION_MS),
  age: () => time.run(time.nowMs + 25 * HOUR_MS),
  hasRow: async (id) => presence.hasRow(id),
}));

describe('a process in virtual time', () => {
  test('counts as alive as long as there are heartbeats', async () => {
    const one = await join();
    await time.run(20 * DURATION_MS);
    expect([await find(), one.getProcessId()]).toEqual([[], one.id]);
  });

  test('owns no new holds before others consider it dead', async () => {
    const one = await join();
    await time.run(HEARTBEAT_MS);
    isDatabaseAvailable = false;
    await time.run(HEARTBEAT_MS + TRUSTED_MS - 1);
    expect(one.getProcessId()).toBe(one.id);
    await time.run(HEARTBEAT_MS + TRUSTED_MS);
    expect(() => one.getProcessId()).toThrow(StoreUnavailableError);
    await time.run(HEARTBEAT_MS + DURATION_MS - 1);
    expect(await find()).toEqual([]);
    await time.run(HEARTBEAT_MS + DURATION_MS);
    expect(await find()).toEqual([one.id]);
  });

  test('seems dead while it is suspended, until its next heartbeat', async () => {
    const [suspended, other] = [await join(), await join()];
    getProcess(suspended.id).suspend();
    await time.run(3 * DURATION_MS);
    expect(await find()).toEqual([suspended.id]);
    expect(() => suspended.getProcessId()).toThrow(StoreUnavailableError);
    getProcess(suspended.id).resume();
    await time.run(3 * DURATION_MS + 1);
    expect([await find(), suspended.getProcessId(), other.getProcessId()]).toEqual([[], suspended.id, other.id]);
  });

  test('seems dead as soon as it is killed', async () => {
    const [killed] = [await join(), await join()];
    getProcess(killed.id).kill();
    expect(await find()).toEqual([killed.id]);
  });

  test('sends no heartbeats after its presence was closed', async () => {
    const one = await join();
    await one.close();
    await time.run(DURATION_MS);
    expect([await find(), time.runs]).toEqual([[one.id], 0]);
  });
});
