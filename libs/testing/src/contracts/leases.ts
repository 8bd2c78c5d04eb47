import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Lease } from '#kernel';
import { type LeaseOptions, LeaseStatus, StalledLeaderError } from '../../../foundation/src/lease.ts';

/** What the tests need of an adapter of the leases. */
export interface LeaseTestbed {
  /** Runs `work` in a process of its own. */
  runWhileLeader(options: LeaseOptions, work: (lease: Lease) => readonly Promise<void>[]): Promise<void>;
  waitUntil(condition: () => boolean | Promise<boolean>): Promise<void>;
  /** Counts the processes that hold the lease or compete for it. */
  countCandidates(name: string): Promise<number>;
  /** Ends the connection of the leader to the database. */
  disconnectLeader(name: string): Promise<void>;
  /** Gives the lease to a process that the test does not run, as if it had acquired the lease. */
  reassign(name: string): Promise<void>;
  issueFencingToken(name: string): Promise<number>;
  listUnheldLeases(names: readonly string[]): Promise<readonly string[]>;
  /** Lets the table of leases not respond until the returned function is called. */
  blockTable(): Promise<() => Promise<void>>;
}

/** Duration of a lease for tests that wait for its end or for a heartbeat, in milliseconds. */
const SHORT_MS = 3_000;

/** A process that competes for a lease, and only records whether it leads. */
interface Contender {
  /** The leases that it has held. */
  readonly heldLeases: readonly Lease[];
  readonly status: LeaseStatus;
  readonly leads: () => boolean;
  readonly problems: readonly string[];
  resign(): Promise<void>;
}

interface Conditions extends Pick<LeaseOptions, 'durationMs'> {
  readonly leaseName?: string;
  /** An additional task; it receives how many leases the contender has held, with this one. */
  readonly startTask?: (count: number) => Promise<void>;
}

/** Tests that every adapter of the leases must pass. */
export function leaseContract(adapter: string, open: () => Promise<LeaseTestbed>): void {
  let testbed: LeaseTestbed;
  let contenders: Contender[] = [];
  let name: string;
  let names = 0;

  function contend({ leaseName = name, startTask = async () => {}, ...options }: Conditions = {}): Contender {
    const stop = new AbortController();
    const problems: string[] = [];
    const heldLeases: Lease[] = [];
    const status = new LeaseStatus();
    let leads = false;
    const lead = async ({ signal }: Lease) => {
      if (signal.aborted) return; // the lease ended before its work started
      leads = true;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      leads = false;
    };
    const leading = testbed.runWhileLeader(
      {
        name: leaseName,
        signal: stop.signal,
        reportError: (problem) => void problems.push(problem),
        leaseStatus: status,
        ...options,
      },
      (lease) => [lead(lease), startTask(heldLeases.push(lease))],
    );
    const resign = async () => {
      stop.abort();
      await leading;
    };
    const contender = { heldLeases, status, leads: () => leads, problems, resign };
    contenders.push(contender);
    return contender;
  }

  /** Starts a leader, then a standby. */
  async function startLeaderAndStandby(conditions?: Conditions) {
    const leader = contend(conditions);
    await testbed.waitUntil(leader.leads);
    const standby = contend(conditions);
    await testbed.waitUntil(async () => (await testbed.countCandidates(name)) === 2);
    return { leader, standby };
  }

  const getToken = (contender: Contender) => contender.heldLeases.at(-1)?.token ?? Number.NaN;

  beforeEach(async () => {
    name = `contract ${++names}`;
    testbed = await open();
  });
  afterEach(async () => {
    await Promise.all(contenders.map((contender) => contender.resign()));
    contenders = [];
  });

  describe(`${adapter}: processes that compete for a lease`, () => {
    test('elect one leader while the others stand by', async () => {
      const all = [contend(), contend(), contend()];
      await testbed.waitUntil(() => all.some((contender) => contender.leads()));
      await testbed.waitUntil(async () => (await testbed.countCandidates(name)) === 3);
      expect(all.map(({ heldLeases }) => heldLeases.length).toSorted()).toEqual([0, 0, 1]);
      expect(await testbed.listUnheldLeases([name, 'vacant'])).toEqual(['vacant']);
    });

    test('replace a leader that resigns, with a higher token', async () => {
      const { leader, standby } = await startLeaderAndStandby();
      expect(standby.leads()).toBe(false);
      await leader.resign();
      await testbed.waitUntil(standby.leads);
      expect(getToken(standby)).toBeGreaterThan(getToken(leader));
      expect(leader.problems).toEqual([]);
    });

    test('have a leader and a standby after a lost connection; the standby leads when the leader resigns', async () => {
      const { leader, standby } = await startLeaderAndStandby();
      const token = getToken(leader);
      await testbed.disconnectLeader(name);
      await testbed.waitUntil(() => !leader.leads());
      await testbed.waitUntil(() => standby.leads() || leader.leads());
      const [current, next] = leader.leads() ? [leader, standby] : [standby, leader];
      await testbed.waitUntil(async () => (await testbed.countCandidates(name)) === 2);
      expect([getToken(current) > token, next.leads()]).toEqual([true, false]);
      await current.resign();
      await testbed.waitUntil(next.leads);
    });

    test('lead at the same time if their leases have different names', async () => {
      const both = [contend({ leaseName: `${name} a` }), contend({ leaseName: `${name} b` })];
      await testbed.waitUntil(() => both.every((contender) => contender.leads()));
    });

    test('leave no lease and no candidate when all of them resign', async () => {
      const { leader, standby } = await startLeaderAndStandby();
      await Promise.all([standby.resign(), leader.resign()]);
      await testbed.waitUntil(async () => (await testbed.countCandidates(name)) === 0);
      expect(await testbed.listUnheldLeases([name])).toEqual([name]);
    });

    test('replace a leader with a task that cannot work, which then leaves the lease to others', async () => {
      const failure = Promise.withResolvers<void>();
      const leader = contend({ startTask: () => failure.promise });
      await testbed.waitUntil(leader.leads);
      const standby = contend();
      await testbed.waitUntil(async () => (await testbed.countCandidates(name)) === 2);
      failure.reject(new StalledLeaderError('the disk is full'));
      await testbed.waitUntil(standby.leads);
      expect([leader.heldLeases.length, leader.status.unable, standby.status.leading]).toEqual([1, [name], [name]]);
    });
  });

  describe(`${adapter}: a lease`, () => {
    test('has a token of at least the microseconds since 1970', async () => {
      const leader = contend();
      await testbed.waitUntil(leader.leads);
      expect(getToken(leader)).toBeGreaterThan(Date.parse('2025-01-01') * 1_000);
    });

    test('ends for all tasks if one of them fails, and is acquired again with a higher token', async () => {
      const contender = contend({
        startTask: async (count) => {
          if (count === 1) throw new Error('a bad day');
        },
      });
      await testbed.waitUntil(() => contender.heldLeases.length === 2 && contender.leads());
      const [first, second] = contender.heldLeases as [Lease, Lease];
      expect([first.signal.aborted, first.isHeld(), second.isHeld()]).toEqual([true, false, true]);
      expect(second.token).toBeGreaterThan(first.token);
      expect(contender.problems).toEqual([`${name} does not hold its lease; retrying`]);
    });

    test('is not released before all its tasks have ended', async () => {
      const remaining = Promise.withResolvers<void>();
      const leader = contend({ startTask: () => remaining.promise });
      await testbed.waitUntil(leader.leads);
      const standby = contend();
      const resigning = leader.resign();
      await testbed.waitUntil(async () => !leader.leads() && (await testbed.countCandidates(name)) === 2);
      expect([leader.heldLeases[0]?.isHeld(), standby.heldLeases.length]).toEqual([false, 0]);
      remaining.resolve();
      await resigning;
      await testbed.waitUntil(standby.leads);
    });

    test('ends if another process has acquired it', async () => {
      const leader = contend({ durationMs: SHORT_MS });
      await testbed.waitUntil(leader.leads);
      await testbed.reassign(name);
      await testbed.waitUntil(() => leader.problems.length > 0);
      expect(leader.heldLeases[0]?.isHeld()).toBe(false);
      expect(leader.problems).toEqual([`${name} does not hold its lease; retrying`]);
    });

    test('ends by itself if the database does not respond, before another process has acquired it', async () => {
      const { leader, standby } = await startLeaderAndStandby({ durationMs: SHORT_MS });
      const unblock = await testbed.blockTable();
      await testbed.waitUntil(() => !leader.leads());
      expect([leader.heldLeases[0]?.isHeld(), standby.heldLeases.length]).toEqual([false, 0]);
      await unblock();
      await testbed.waitUntil(() => leader.leads() || standby.leads());
    });
  });

  describe(`${adapter}: fencing tokens`, () => {
    test('are issued above the token of the holder, whose lease continues, and below the next one', async () => {
      const { leader, standby } = await startLeaderAndStandby();
      const issued = await testbed.issueFencingToken(name);
      expect(issued).toBeGreaterThan(getToken(leader));
      expect(await testbed.issueFencingToken(name)).toBeGreaterThan(issued);
      expect([leader.leads(), leader.heldLeases[0]?.isHeld()]).toEqual([true, true]);
      await leader.resign();
      await testbed.waitUntil(standby.leads);
      expect(getToken(standby)).toBeGreaterThan(issued);
    });
  });
}
