import {
  type Clock,
  createExpireHoldsCommand,
  EXPIRY_MARGIN_MS,
  type HoldCommandRouter,
  MAX_PLACEMENT_MS,
} from '#application';
import type { HoldCommand } from '#domain';
import { createRootCause, type Runtime } from '#kernel';

const SWEEP_INTERVAL_MS = 500;
/**
 * How long every check must find a process stale before its holds are ended. After a database outage every process is
 * stale until its next heartbeat. A process whose heartbeats fail for this long places no holds.
 */
const DEAD_AFTER_MS = 10_000;
/**
 * `findOverduePayers` and `findPayersByOwner` return hints from read models: the stream of the payer decides. A payer
 * is given by the name of its stream, such as `account-…`.
 */
export interface HoldExpiryDependencies {
  readonly payers: Pick<HoldCommandRouter, 'run'>;
  readonly clock: Clock;
  /** Returns payers that may have a hold whose expiry is not after `at`. */
  findOverduePayers(at: string): Promise<readonly string[]>;
  /** Returns the processes that seem dead: the last heartbeat is too old, or the connection has ended. */
  findStaleProcesses(): Promise<readonly string[]>;
  /** Returns payers that may have open holds of these owners. */
  findPayersByOwner(owners: readonly string[]): Promise<readonly { readonly payer: string; readonly owner: string }[]>;
  readonly runtime: Runtime;
}

/**
 * Ends holds that have expired or whose process has died, so that no money stays locked. Runs until `signal` is
 * aborted.
 */
export async function expireHolds(dependencies: HoldExpiryDependencies, signal: AbortSignal): Promise<void> {
  const { clock, runtime, findOverduePayers, findPayersByOwner } = dependencies;
  const monitor = new StaleProcessMonitor(dependencies);
  while (!signal.aborted) {
    const before = clock.fromNow(-EXPIRY_MARGIN_MS);
    const overduePayers = clock.isReliable()
      ? await findOrReport('overdue holds', () => findOverduePayers(before), dependencies)
      : [];
    for (const payer of overduePayers) {
      if (signal.aborted) return;
      await endHolds(payer, createExpireHoldsCommand(clock), dependencies);
    }
    // A process that counts as dead may have returned since it was checked, and the holds that it places then are not
    // older. From before the check, as this process may be suspended right after it.
    const placedBefore = clock.fromNow(-MAX_PLACEMENT_MS);
    const dead = await monitor.check();
    const abandoned =
      dead.length > 0 ? await findOrReport('holds of dead processes', () => findPayersByOwner(dead), dependencies) : [];
    for (const { payer, owner } of abandoned) {
      if (signal.aborted) return;
      await endHolds(
        payer,
        { type: 'AbandonHolds', data: { owner, before: placedBefore, at: clock.now() } },
        dependencies,
      );
    }
    await runtime.sleep(SWEEP_INTERVAL_MS, { signal });
  }
}

/**
 * Counts how many checks in a row found a process stale. Checks are counted instead of time, because nothing is known
 * about the time in which this process itself was paused.
 */
class StaleProcessMonitor {
  private staleCounts: ReadonlyMap<string, number> = new Map();

  constructor(private readonly dependencies: HoldExpiryDependencies) {}

  /** @returns the processes that count as dead because enough checks in a row found them stale */
  async check(): Promise<readonly string[]> {
    const stale = await findOrReport(
      'stale processes',
      () => this.dependencies.findStaleProcesses(),
      this.dependencies,
    );
    this.staleCounts = new Map(stale.map((id) => [id, (this.staleCounts.get(id) ?? 0) + 1]));
    return stale.filter((id) => (this.staleCounts.get(id) ?? 0) > DEAD_AFTER_MS / SWEEP_INTERVAL_MS);
  }
}

/** @returns an empty list if `find` fails, which is reported */
async function findOrReport<T>(
  what: string,
  find: () => Promise<readonly T[]>,
  { runtime }: HoldExpiryDependencies,
): Promise<readonly T[]> {
  try {
    return await find();
  } catch (error) {
    runtime.reportError(`${what} could not be found; retrying`, error);
    return [];
  }
}

/** A failure is only reported, so that the money of other payers does not stay locked. */
async function endHolds(
  payer: string,
  command: HoldCommand,
  { payers, runtime }: HoldExpiryDependencies,
): Promise<void> {
  try {
    await payers.run(payer, command, createRootCause('saga:hold-expiry', runtime.generateId()));
  } catch (error) {
    runtime.reportError(`the holds of ${payer} could not be ended; retrying`, error);
  }
}
