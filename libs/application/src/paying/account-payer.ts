import { setTimeout as delay } from 'node:timers/promises';
import {
  ACCOUNT,
  type Account,
  type AccountCommand,
  type AccountEvent,
  type Charge,
  reachable,
  spendable,
} from '#domain';
import { type Cause, money, type PicoUsd, Rejection, StoreUnavailable, startedBy, streamName, ZERO } from '#kernel';
import { Clock } from '../clock.ts';
import { Accounts } from '../streams.ts';
import {
  actorOf,
  type Caller,
  type Growth,
  type Hold,
  type HoldRequest,
  HoldTaken,
  type Payer,
  type Release,
} from './payer.ts';

const RETRY_MS = 500;

/** An account that pays from its balance, within the cap of the key it was asked with. */
export class AccountPayer implements Payer {
  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
    private readonly owner: HoldOwner,
    private readonly caller: Caller,
  ) {}

  get id(): string {
    return streamName(ACCOUNT, this.caller.accountId);
  }

  async take({ holdId, lifetimeMs, ...wanted }: HoldRequest): Promise<Hold> {
    const { accountId, keyId } = this.caller;
    const at = this.clock.now();
    const expiresAt = this.clock.milliseconds() + lifetimeMs;
    const data = { holdId, keyId, ...wanted, owner: this.owner(), expiresAt: this.clock.at(expiresAt), at };
    const { events, state } = await this.accounts.run(accountId, { type: 'HoldFunds', data }, this.request(holdId));
    const held = events.find((event) => event.type === 'FundsHeld');
    if (!held) throw new HoldTaken(`Hold ${holdId} belongs to a running request`);
    const amount = money.fromJson(held.data.amount);
    const [beside, reach] = [spendable(state, keyId, at), reachable(state, keyId, at)];
    return { holdId, payer: this.id, amount, beside, reach, expiresAt };
  }

  async grow(hold: Hold, growth: Growth): Promise<Hold | 'not now' | 'no more' | 'gone'> {
    const data = { holdId: hold.holdId, ...growth, at: this.clock.now() };
    try {
      const events = await this.surely(hold, { type: 'ExtendHold', data });
      const extended = events.find((event) => event.type === 'HoldExtended');
      return { ...hold, amount: extended ? money.fromJson(extended.data.amount) : growth.to };
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      if (error.code === 'hold_resolved') return 'gone';
      return (error.details.held ?? '0') === '0' ? 'no more' : 'not now';
    }
  }

  async settle(hold: Hold, charge: Charge): Promise<PicoUsd> {
    const at = this.clock.now();
    const events = await this.surely(hold, { type: 'SettleHold', data: { holdId: hold.holdId, charge, at } });
    const settled = events.find((event) => event.type === 'HoldSettled');
    return settled ? money.fromJson(settled.data.charged) : ZERO;
  }

  async release(hold: Hold, { failure, attempts, absorbed }: Release): Promise<void> {
    const why = { errorCode: failure.code, reason: failure.message, attempts, ...(absorbed ? { absorbed } : {}) };
    const at = this.clock.now();
    await this.surely(hold, { type: 'ReleaseHold', data: { holdId: hold.holdId, ...why, at } });
  }

  /** A hold has the id of its request. */
  private request(holdId: string): Cause {
    return startedBy(actorOf(this.caller), holdId);
  }

  /** Changes a hold, also when the store is away for a while. A hold that cannot be ended in time expires by itself. */
  private async surely(hold: Hold, command: AccountCommand): Promise<readonly AccountEvent[]> {
    for (;;) {
      try {
        return (await this.accounts.run(this.caller.accountId, command, this.request(hold.holdId))).events;
      } catch (error) {
        const again = error instanceof StoreUnavailable && this.clock.milliseconds() < hold.expiresAt;
        if (!again) throw error;
        await delay(RETRY_MS);
      }
    }
  }
}

/**
 * The id of this process, for the holds that it takes: when it has died, they are ended.
 * @throws StoreUnavailable while others may take it for dead
 */
export type HoldOwner = () => string;

/** Finds the payer: of a request, or of a hold. */
export class Payers {
  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
    private readonly owner: HoldOwner,
  ) {}

  of(caller: Caller): Payer {
    return new AccountPayer(this.accounts, this.clock, this.owner, caller);
  }

  /** Ends the holds of an account that have expired, so that its facts say what became of them. Returns the account. */
  async endOverdueHolds(accountId: string, cause: Cause): Promise<Account> {
    const data = { at: this.clock.now() };
    return (await this.accounts.run(accountId, { type: 'ExpireHolds', data }, cause)).state;
  }

  /** The payer of a hold, for a later settle. */
  ofHold({ payer }: Hold): Payer {
    return this.of({ accountId: payer.slice(ACCOUNT.length + 1), keyId: null });
  }
}
