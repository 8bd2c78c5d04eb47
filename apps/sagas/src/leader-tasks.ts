import { type Foundation, type LeaseStatus, runWhileLeader, type WorkProbe } from '#foundation';
import type { Lease } from '#kernel';

/** A workflow or a sweep. It has its own lease, so that only one process runs it at a time. */
export interface LeaderTask {
  /** The name of the lease. */
  readonly name: string;
  readonly probe: WorkProbe;
  /** Starts the work. It ends when the lease ends. */
  run(lease: Lease): readonly Promise<void>[];
}

/**
 * Competes for the leases of these tasks, and runs each task while this process holds its lease.
 * @returns a function that ends all tasks and releases the leases
 */
export function startLeaderTasks(
  tasks: readonly LeaderTask[],
  { databaseUrl, runtime: { reportError } }: Foundation,
  leaseStatus: LeaseStatus,
): () => Promise<void> {
  const stopController = new AbortController();
  const { signal } = stopController;
  const leaders = tasks.map(({ name, probe, run }) =>
    runWhileLeader({ databaseUrl, signal, reportError, leaseStatus, name, probe }, run),
  );
  return async () => {
    stopController.abort();
    await Promise.all(leaders);
  };
}
