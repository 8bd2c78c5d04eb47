import { ACCOUNT, calculateMaxSpendable, calculateSpendable } from '#domain';
import { money, Rejection, toStreamName } from '#kernel';
import type { Accounts } from '../streams.ts';
import {
  type Caller,
  type Hold,
  HoldAlreadyExistsError,
  type HoldExtensionRequest,
  type HoldRequest,
  toActor,
} from './payer.ts';
import { type PayerDependencies, StreamPayer } from './stream-payer.ts';

/** An account that pays from its balance, within the cap of the key it was asked with. */
export class AccountPayer extends StreamPayer {
  constructor(
    holding: PayerDependencies,
    private readonly accounts: Accounts,
    private readonly caller: Caller,
  ) {
    super(holding);
  }

  get id(): string {
    return toStreamName(ACCOUNT, this.caller.accountId);
  }

  protected get actor(): string {
    return toActor(this.caller);
  }

  async take({ holdId, query, atLeast, atMost, part, lifetimeMs }: HoldRequest): Promise<Hold> {
    const { accountId, keyId } = this.caller;
    const { clock, owner, bearable } = this.holding;
    const at = clock.now();
    const expiresAt = clock.milliseconds() + lifetimeMs;
    const wanted = {
      holdId,
      keyId,
      query,
      minAmount: atLeast,
      maxAmount: atMost,
      partialHold: part,
      lossLimit: bearable,
    };
    const data = { ...wanted, owner: owner(), expiresAt: clock.at(expiresAt), at };
    const { events, state } = await this.confirmed({ holdId, expiresAt }, () =>
      this.accounts.run(accountId, { type: 'HoldFunds', data }, this.request(holdId)),
    );
    const held = events.find((event) => event.type === 'FundsHeld');
    if (!held) throw new HoldAlreadyExistsError(`Hold ${holdId} belongs to a running request`);
    const amount = money.parseJsonAmount(held.data.amount);
    const [beside, reach] = [calculateSpendable(state, keyId, at), calculateMaxSpendable(state, keyId, at)];
    return { holdId, payer: this.id, amount, beside, reach, expiresAt };
  }

  async grow(hold: Hold, growth: HoldExtensionRequest): Promise<Hold | 'not now' | 'no more' | 'gone'> {
    const { holdId } = hold;
    const data = { holdId, ...growth, at: this.holding.clock.now() };
    const extend = () => this.accounts.run(this.caller.accountId, { type: 'ExtendHold', data }, this.request(holdId));
    try {
      const { events } = await this.surely(hold, extend);
      const extended = events.find((event) => event.type === 'HoldExtended');
      return { ...hold, amount: extended ? money.parseJsonAmount(extended.data.amount) : growth.targetAmount };
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      if (error.code === 'hold_resolved') return 'gone';
      return (error.details.held ?? '0') === '0' ? 'no more' : 'not now';
    }
  }
}
