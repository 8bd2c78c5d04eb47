import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Accounts, Clock } from '#application';
import { startedBy } from '#kernel';

const SWEEP_EVERY_MS = 500;

export interface HoldExpiryPorts {
  readonly accounts: Accounts;
  readonly clock: Clock;
  /** Accounts that seem to have a hold past its expiry at `now`. A hint: the account's stream decides. */
  overdue(now: string): Promise<readonly string[]>;
  alarm(problem: string, error: unknown): void;
}

/** Ends holds that were not ended in time, so that no money stays locked. */
export async function expireHolds(ports: HoldExpiryPorts, signal: AbortSignal): Promise<void> {
  const { clock, overdue, alarm } = ports;
  while (!signal.aborted) {
    try {
      const at = clock.now();
      for (const accountId of await overdue(at)) {
        if (signal.aborted) return;
        await expireHoldsOf(accountId, at, ports);
      }
    } catch (error) {
      alarm('holds past their expiry could not be found; trying again', error);
    }
    await delay(SWEEP_EVERY_MS, undefined, { signal }).catch(() => {});
  }
}

/** One account that cannot be used must not keep the money of others locked; the next sweep comes back to it. */
async function expireHoldsOf(accountId: string, at: string, { accounts, alarm }: HoldExpiryPorts): Promise<void> {
  try {
    await accounts.run(accountId, { type: 'ExpireHolds', data: { at } }, startedBy('saga:hold-expiry', randomUUID()));
  } catch (error) {
    alarm(`the holds of account ${accountId} could not be ended; trying again`, error);
  }
}
