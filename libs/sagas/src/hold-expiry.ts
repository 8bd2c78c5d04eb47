import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Clock, createExpireHoldsCommand, EXPIRY_MARGIN_MS, type HoldCommandRouter } from '#application';
import type { HoldCommand } from '#domain';
import { createRootCause } from '#kernel';

const SWEEP_EVERY_MS = 500;
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
  overdue(at: string): Promise<readonly string[]>;
  /** Processes that seem dead at this moment. */
  seeminglyDead(): Promise<readonly string[]>;
  /** Payers that seem to have holds of these owners. */
  heldBy(owners: readonly string[]): Promise<readonly { readonly payer: string; readonly owner: string }[]>;
  alarm(problem: string, error: unknown): void;
}

/** Ends holds that were not ended in time, or whose process has died, so that no money stays locked. */
export async function expireHolds(ports: HoldExpiryDependencies, signal: AbortSignal): Promise<void> {
  const { clock, overdue, heldBy } = ports;
  const watch = new DeathWatch(ports);
  while (!signal.aborted) {
    const before = clock.fromNow(-EXPIRY_MARGIN_MS);
    const late = clock.isReliable() ? await found('holds past their expiry', () => overdue(before), ports) : [];
    for (const payer of late) {
      if (signal.aborted) return;
      await endHolds(payer, createExpireHoldsCommand(clock), ports);
    }
    const dead = await watch.look();
    const left = dead.length > 0 ? await found('holds of processes that have died', () => heldBy(dead), ports) : [];
    for (const { payer, owner } of left) {
      if (signal.aborted) return;
      await endHolds(payer, { type: 'AbandonHolds', data: { owner, at: clock.now() } }, ports);
    }
    await delay(SWEEP_EVERY_MS, undefined, { signal }).catch(() => {});
  }
}

/**
 * Who has seemed dead without a break. What is counted are looks, with a pause before each, and not time: a process that was
 * stopped has not looked meanwhile.
 */
class DeathWatch {
  private looks: ReadonlyMap<string, number> = new Map();

  constructor(private readonly ports: HoldExpiryDependencies) {}

  /** One look. Returns who is dead. */
  async look(): Promise<readonly string[]> {
    const seen = await found('processes that have died', () => this.ports.seeminglyDead(), this.ports);
    this.looks = new Map(seen.map((id) => [id, (this.looks.get(id) ?? 0) + 1]));
    return seen.filter((id) => (this.looks.get(id) ?? 0) > DEAD_AFTER_MS / SWEEP_EVERY_MS);
  }
}

/** What was looked for; nothing when it could not be. */
async function found<T>(
  what: string,
  look: () => Promise<readonly T[]>,
  { alarm }: HoldExpiryDependencies,
): Promise<readonly T[]> {
  try {
    return await look();
  } catch (error) {
    alarm(`${what} could not be found; trying again`, error);
    return [];
  }
}

/** One payer that cannot be used must not keep the money of others locked; the next sweep comes back to it. */
async function endHolds(payer: string, command: HoldCommand, { payers, alarm }: HoldExpiryDependencies): Promise<void> {
  try {
    await payers.run(payer, command, createRootCause('saga:hold-expiry', randomUUID()));
  } catch (error) {
    alarm(`the holds of ${payer} could not be ended; trying again`, error);
  }
}
