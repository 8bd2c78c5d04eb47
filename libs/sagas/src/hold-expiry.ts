import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Clock, createExpireHoldsCommand, EXPIRY_MARGIN_MS, type HoldCommandRouter } from '#application';
import type { HoldCommand } from '#domain';
import { createRootCause } from '#kernel';

const SWEEP_INTERVAL_MS = 500;
/**
 * For so long a process must have seemed dead at every look: a database that comes back finds all of them dead until their
 * next heartbeat. A process that cannot show for so long that it is alive takes no holds.
 */
const DEAD_AFTER_MS = 10_000;

/** What the ports find are hints: the payer's stream decides. Payers go by their streams, such as `account-…`. */
export interface HoldExpiryDependencies {
  readonly payers: Pick<HoldCommandRouter, 'run'>;
  readonly clock: Clock;
  /** Payers that seem to have a hold past its expiry at an instant. */
  findOverduePayers(at: string): Promise<readonly string[]>;
  /** Processes that seem dead at this moment. */
  findStaleProcesses(): Promise<readonly string[]>;
  /** Payers that seem to have holds of these owners. */
  findPayersByOwner(owners: readonly string[]): Promise<readonly { readonly payer: string; readonly owner: string }[]>;
  reportError(problem: string, error: unknown): void;
}

/** Ends holds that were not ended in time, or whose process has died, so that no money stays locked. */
export async function expireHolds(dependencies: HoldExpiryDependencies, signal: AbortSignal): Promise<void> {
  const { clock, findOverduePayers, findPayersByOwner } = dependencies;
  const monitor = new StaleProcessMonitor(dependencies);
  while (!signal.aborted) {
    const before = clock.fromNow(-EXPIRY_MARGIN_MS);
    const overduePayers = clock.isReliable()
      ? await findOrReport('holds past their expiry', () => findOverduePayers(before), dependencies)
      : [];
    for (const payer of overduePayers) {
      if (signal.aborted) return;
      await endHolds(payer, createExpireHoldsCommand(clock), dependencies);
    }
    const dead = await monitor.check();
    const abandoned =
      dead.length > 0
        ? await findOrReport('holds of processes that have died', () => findPayersByOwner(dead), dependencies)
        : [];
    for (const { payer, owner } of abandoned) {
      if (signal.aborted) return;
      await endHolds(payer, { type: 'AbandonHolds', data: { owner, at: clock.now() } }, dependencies);
    }
    await delay(SWEEP_INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}

/**
 * Who has seemed dead without a break. What is counted are looks, with a pause before each, and not time: a process that was
 * stopped has not looked meanwhile.
 */
class StaleProcessMonitor {
  private staleCounts: ReadonlyMap<string, number> = new Map();

  constructor(private readonly dependencies: HoldExpiryDependencies) {}

  /** One look. Returns who is dead. */
  async check(): Promise<readonly string[]> {
    const stale = await findOrReport(
      'processes that have died',
      () => this.dependencies.findStaleProcesses(),
      this.dependencies,
    );
    this.staleCounts = new Map(stale.map((id) => [id, (this.staleCounts.get(id) ?? 0) + 1]));
    return stale.filter((id) => (this.staleCounts.get(id) ?? 0) > DEAD_AFTER_MS / SWEEP_INTERVAL_MS);
  }
}

/** What was looked for; nothing when it could not be. */
async function findOrReport<T>(
  what: string,
  find: () => Promise<readonly T[]>,
  { reportError }: HoldExpiryDependencies,
): Promise<readonly T[]> {
  try {
    return await find();
  } catch (error) {
    reportError(`${what} could not be found; trying again`, error);
    return [];
  }
}

/** One payer that cannot be used must not keep the money of others locked; the next sweep comes back to it. */
async function endHolds(
  payer: string,
  command: HoldCommand,
  { payers, reportError }: HoldExpiryDependencies,
): Promise<void> {
  try {
    await payers.run(payer, command, createRootCause('saga:hold-expiry', randomUUID()));
  } catch (error) {
    reportError(`the holds of ${payer} could not be ended; trying again`, error);
  }
}
