import { setTimeout as delay } from 'node:timers/promises';
import type { AccountCommand, AccountEvent, Attempt, Charge, Query, RejectionCode } from '#domain';
import { money, type PicoUsd, Rejection, StoreUnavailable, ZERO } from '#kernel';
import { Clock } from '../clock.ts';
import type { UpstreamFailure } from '../failures.ts';
import { Accounts } from '../streams.ts';

const RETRY_MS = 500;

/** Who pays: an account, and the key it was asked with; null when the account itself asks. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string | null;
}

/** Evidence that money is held. Whoever calls a paid upstream must show one, so no call can be made without it. */
export interface Hold {
  readonly holdId: string;
  readonly accountId: string;
  readonly amount: PicoUsd;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

export interface HoldWish {
  readonly caller: Caller;
  /** One request, one charge: also the id of the hold. */
  readonly requestId: string;
  readonly query: Query;
  readonly atLeast: PicoUsd;
  readonly atMost: PicoUsd;
  readonly lifetimeMs: number;
}

/** Takes and ends holds: the only way a use of anything paid is charged. */
export class Holds {
  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
  ) {}

  /** @throws Rejection when the balance or the key does not allow `atLeast`, or when the request has its hold already */
  async take({ caller, requestId, query, atLeast, atMost, lifetimeMs }: HoldWish): Promise<Hold> {
    const { accountId, keyId } = caller;
    const at = this.clock.now();
    const expiresAt = this.clock.milliseconds() + lifetimeMs;
    const data = { holdId: requestId, keyId, query, atLeast, atMost, expiresAt: new Date(expiresAt).toISOString(), at };
    const { events } = await this.accounts.run(accountId, { type: 'HoldFunds', data }, { request: requestId });
    const held = events.find((event) => event.type === 'FundsHeld');
    // Somebody else holds it and makes its call: a second call would be served for nothing.
    if (!held) throw new Rejection<RejectionCode>('hold_conflict', `Hold ${requestId} belongs to a running request`);
    return { holdId: requestId, accountId, amount: money.fromJson(held.data.amount), expiresAt };
  }

  /** Charges a use. Returns what the customer pays of its price: at most what was held, nothing after the hold expired. */
  async settle(hold: Hold, charge: Charge): Promise<PicoUsd> {
    const at = this.clock.now();
    const events = await this.surely(hold, { type: 'SettleHold', data: { holdId: hold.holdId, charge, at } });
    const settled = events.find((event) => event.type === 'HoldSettled');
    return settled ? money.fromJson(settled.data.charged) : ZERO;
  }

  /**
   * Gives a hold back because nothing was delivered.
   * @param absorbed what the upstream will invoice all the same
   */
  async release(hold: Hold, failure: UpstreamFailure, attempts: readonly Attempt[], absorbed?: Charge): Promise<void> {
    const why = { errorCode: failure.code, reason: failure.message, attempts, ...(absorbed ? { absorbed } : {}) };
    const at = this.clock.now();
    await this.surely(hold, { type: 'ReleaseHold', data: { holdId: hold.holdId, ...why, at } });
  }

  /** Ends a hold, also when the store is away for a while. A hold that cannot be ended in time expires by itself. */
  private async surely(hold: Hold, command: AccountCommand): Promise<readonly AccountEvent[]> {
    for (;;) {
      try {
        return (await this.accounts.run(hold.accountId, command, { request: hold.holdId })).events;
      } catch (error) {
        const again = error instanceof StoreUnavailable && this.clock.milliseconds() < hold.expiresAt;
        if (!again) throw error;
        await delay(RETRY_MS);
      }
    }
  }
}
