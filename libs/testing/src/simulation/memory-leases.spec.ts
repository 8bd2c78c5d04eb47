import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Lease } from '#kernel';
import { competeForLease, type LeaseTable, StalledLeaderError } from '../../../foundation/src/lease.ts';
import { leaseContract } from '../contracts/leases.ts';
import { Chance } from './chance.ts';
import { MemoryLeases } from './memory-leases.ts';
import { SimulatedProcess } from './simulated-process.ts';
import { SimulatedTime } from './simulated-time.ts';

const START_MS = Date.parse('2026-03-01T12:00:00.000Z');
const NAME = 'sweep';
/** Duration of a lease, in milliseconds. */
const DURATION_MS = 8_000;
/** How long a leader relies on its lease after a heartbeat. */
const TRUSTED_MS = 7_600;
/** How often standbys try to acquire the lease. */
const INTERVAL_MS = 500;

let time: SimulatedTime;
let leases: MemoryLeases;
/** The calls of the table that fail. */
let failing: Set<keyof LeaseTable>;
/** How far the clock of the database has jumped. */
let databaseAheadMs: number;
beforeEach(() => {
  time = new SimulatedTime();
  failing = new Set();
  databaseAheadMs = 0;
  leases = new MemoryLeases(() => START_MS + time.nowMs + databaseAheadMs);
});

function createProcess(name: string): SimulatedProcess {
  return new SimulatedProcess(name, { time, chance: new Chance('1'), startMs: START_MS, reportError: () => {} });
}

/** Returns the table as a process reaches it, with the calls that fail now. */
function openTable(process: SimulatedProcess, onLost: (error: unknown) => void): LeaseTable {
  const table = leases.open(process, onLost);
  const failOr = <T>(call: keyof LeaseTable, work: () => Promise<T>) =>
    failing.has(call) ? Promise.reject(new Error('the database does not respond')) : work();
  return {
    acquire: (...args) => failOr('acquire', () => table.acquire(...args)),
    renew: (...args) => failOr('renew', () => table.renew(...args)),
    release: (...args) => failOr('release', () => table.release(...args)),
    close: () => table.close(),
  };
}

leaseContract('in memory', async () => {
  const candidates = new Map<string, number>();
  const leaders = new Map<string, SimulatedProcess>();
  let processes = 0;
  const count = (name: string, by: number) => void candidates.set(name, (candidates.get(name) ?? 0) + by);
  return {
    runWhileLeader: async (options, work) => {
      const process = createProcess(`process ${++processes}`);
      count(options.name, 1);
      await competeForLease(
        options,
        process.runtime,
        (onLost) => openTable(process, onLost),
        (lease) => {
          leaders.set(options.name, process);
          return work(lease);
        },
      );
      count(options.name, -1);
    },
    waitUntil: async (condition) => {
      for (const untilMs = time.nowMs + 60_000; !(await condition()); await time.run(time.nowMs + 100))
        if (time.nowMs > untilMs) throw new Error('the expected condition was not met in time');
    },
    countCandidates: async (name) => candidates.get(name) ?? 0,
    disconnectLeader: async (name) => leases.disconnect(leaders.get(name) as SimulatedProcess),
    reassign: async (name) => {
      databaseAheadMs += DURATION_MS;
      expect(await openTable(createProcess('other'), () => {}).acquire(name, DURATION_MS, 0)).toBeDefined();
    },
    issueFencingToken: async (name) => leases.issueFencingToken(name),
    listUnheldLeases: async (names) => leases.listUnheldLeases(names),
    blockTable: async () => {
      for (const call of ['acquire', 'renew', 'release'] as const) failing.add(call);
      return async () => failing.clear();
    },
  };
});

/** A process that competes for the lease, and only records what happens. */
interface Contender {
  readonly process: SimulatedProcess;
  readonly heldLeases: readonly Lease[];
  /** When a task of it noticed that its lease had ended, in milliseconds since the start. */
  readonly ends: readonly number[];
  readonly problems: readonly string[];
  readonly leads: () => boolean;
}

function contend(name: string, startTask: (count: number) => Promise<void> = async () => {}): Contender {
  const process = createProcess(name);
  const [heldLeases, ends, problems]: [Lease[], number[], string[]] = [[], [], []];
  const lead = async ({ signal }: Lease) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    ends.push(time.nowMs);
  };
  const options = {
    name: NAME,
    signal: process.stopSignal,
    reportError: (problem: string, error: unknown) => void problems.push(`${problem}: ${(error as Error).message}`),
  };
  void competeForLease(
    options,
    process.runtime,
    (onLost) => openTable(process, onLost),
    (lease) => [lead(lease), startTask(heldLeases.push(lease))],
  );
  return { process, heldLeases, ends, problems, leads: () => heldLeases.length > ends.length };
}

async function startLeaderAndStandby() {
  const [leader, standby] = [contend('leader'), contend('standby')];
  await time.run(100);
  expect([leader.leads(), standby.leads()]).toEqual([true, false]);
  return { leader, standby };
}

describe('a lease in virtual time', () => {
  test('lasts as long as there are heartbeats', async () => {
    const { leader, standby } = await startLeaderAndStandby();
    await time.run(20 * DURATION_MS);
    expect([leader.heldLeases.length, standby.heldLeases.length, leader.heldLeases[0]?.isHeld()]).toEqual([1, 0, true]);
  });

  test('ends for its holder after the trusted share of its duration, and for others after its duration', async () => {
    const { leader, standby } = await startLeaderAndStandby();
    failing.add('renew').add('release');
    await time.run(TRUSTED_MS - 1);
    expect([leader.leads(), leader.heldLeases[0]?.isHeld()]).toEqual([true, true]);
    await time.run(TRUSTED_MS);
    expect([leader.leads(), leader.heldLeases[0]?.isHeld(), leader.ends]).toEqual([false, false, [TRUSTED_MS]]);
    await time.run(DURATION_MS - 1);
    expect([leases.listUnheldLeases([NAME]), standby.leads()]).toEqual([[], false]);
    await time.run(DURATION_MS + INTERVAL_MS);
    expect(leader.leads() || standby.leads()).toBe(true);
    expect(leader.problems).toEqual([
      ...Array(3).fill(`the lease of ${NAME} could not be renewed; retrying: the database does not respond`),
      `${NAME} does not hold its lease; retrying: the lease has expired`,
    ]);
  });

  test('is retained if a single heartbeat fails', async () => {
    const { leader } = await startLeaderAndStandby();
    failing.add('renew');
    await time.run(2_100);
    failing.clear();
    await time.run(2 * DURATION_MS);
    expect([leader.heldLeases.length, leader.leads(), leader.problems.length]).toEqual([1, true, 1]);
  });

  test('continues after a token was issued without it', async () => {
    const { leader } = await startLeaderAndStandby();
    leases.issueFencingToken(NAME);
    await time.run(2 * DURATION_MS);
    expect([leader.heldLeases.length, leader.heldLeases[0]?.isHeld()]).toEqual([1, true]);
  });

  test('is acquired again half a second after a failure, and 5 s after a task could not work', async () => {
    const leader = contend('leader', async (count) => {
      if (count === 1) throw new Error('a bad day');
      if (count === 2) throw new StalledLeaderError('the disk is full');
    });
    await time.run(499);
    expect([leader.heldLeases.length, leader.ends]).toEqual([1, [0]]);
    await time.run(500);
    expect([leader.heldLeases.length, leader.ends]).toEqual([2, [0, 500]]);
    await time.run(5_499);
    expect(leader.heldLeases).toHaveLength(2);
    await time.run(5_500);
    expect(leader.heldLeases).toHaveLength(3);
  });
});

describe('a leader in virtual time', () => {
  test('loses its lease while it is suspended, and notices that only when it continues', async () => {
    const { leader, standby } = await startLeaderAndStandby();
    leader.process.suspend();
    await time.run(DURATION_MS - 1);
    expect(standby.leads()).toBe(false);
    await time.run(DURATION_MS + INTERVAL_MS);
    const [lease] = leader.heldLeases as [Lease];
    expect([standby.leads(), lease.isHeld(), lease.signal.aborted]).toEqual([true, false, false]);
    await time.run(60_000);
    expect(leader.ends).toEqual([]);
    leader.process.resume();
    await time.run(60_001);
    expect(leader.ends).toEqual([60_000]);
    await time.run(90_000);
    expect([leader.heldLeases.length, standby.leads()]).toEqual([1, true]);
    expect(standby.heldLeases[0]?.token).toBeGreaterThan(lease.token);
  });

  test('retains its lease if it is suspended for less than the trusted share', async () => {
    const { leader, standby } = await startLeaderAndStandby();
    await time.run(4_100);
    leader.process.suspend();
    await time.run(11_500);
    leader.process.resume();
    await time.run(30_000);
    expect([leader.heldLeases.length, standby.heldLeases.length]).toEqual([1, 0]);
  });

  test('loses its lease long before the expiry if it is killed', async () => {
    const { leader, standby } = await startLeaderAndStandby();
    leader.process.kill();
    await time.run(INTERVAL_MS);
    expect(standby.leads()).toBe(true);
  });

  test('can still lead when another one already does, if its connection ends while it is suspended', async () => {
    const { leader, standby } = await startLeaderAndStandby();
    leader.process.suspend();
    leases.disconnect(leader.process);
    await time.run(INTERVAL_MS);
    const [lease] = leader.heldLeases as [Lease];
    expect([standby.leads(), lease.isHeld(), lease.signal.aborted]).toEqual([true, true, false]);
    leader.process.resume();
    await time.run(INTERVAL_MS + 1);
    expect([standby.leads(), leader.leads(), lease.isHeld()]).toEqual([true, false, false]);
    await time.run(DURATION_MS);
    expect([standby.leads(), leader.heldLeases.length]).toEqual([true, 1]);
  });
});

describe('fencing tokens in memory', () => {
  test('increase even if the clock of the database moves back', async () => {
    const before = leases.issueFencingToken(NAME);
    databaseAheadMs = -3_600_000;
    expect(leases.issueFencingToken(NAME)).toBe(before + 1);
  });
});
