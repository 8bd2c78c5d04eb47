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

/** Pays from the balance of an account, within the spending limit of the API key if one was used. */
export class AccountPayer extends StreamPayer {
  constructor(
    dependencies: PayerDependencies,
    private readonly accounts: Accounts,
    private readonly caller: Caller,
  ) {
    super(dependencies);
  }

  get id(): string {
    return toStreamName(ACCOUNT, this.caller.accountId);
  }

  protected get actor(): string {
    return toActor(this.caller);
  }

  async hold({ holdId, query, minAmount, maxAmount, partial, lifetimeMs }: HoldRequest): Promise<Hold> {
    const { accountId, keyId } = this.caller;
    const { clock, getProcessId, lossLimit } = this.dependencies;
    const at = clock.now();
    const expiresAt = clock.nowMs() + lifetimeMs;
    const holdLimits = { holdId, keyId, query, minAmount, maxAmount, partialHold: partial, lossLimit };
    const data = { ...holdLimits, owner: getProcessId(), expiresAt: clock.toInstant(expiresAt), at };
    const { events, state, revision } = await this.acquireHold({ holdId, expiresAt }, () =>
      this.accounts.run(accountId, { type: 'HoldFunds', data }, this.createCause(holdId)),
    );
    const held = events.find((event) => event.type === 'FundsHeld');
    if (!held) throw new HoldAlreadyExistsError(`Hold ${holdId} belongs to a running request`);
    this.heldAtRevision = revision;
    const amount = money.parseJsonAmount(held.data.amount);
    const [availableAfter, maxSpendable] = [
      calculateSpendable(state, keyId, at),
      calculateMaxSpendable(state, keyId, at),
    ];
    return { holdId, payer: this.id, amount, availableAfter, maxSpendable, expiresAt };
  }

  async extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'> {
    const { holdId } = hold;
    const data = { holdId, ...extension, knownAmount: hold.amount, at: this.dependencies.clock.now() };
    const extend = () =>
      this.accounts.run(this.caller.accountId, { type: 'ExtendHold', data }, this.createCause(holdId));
    try {
      const { state } = await this.change(hold, false, extend).result;
      return { ...hold, amount: state.holds.get(holdId)?.amount ?? hold.amount };
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      if (error.code === 'hold_resolved') return 'expired';
      return (error.details.held ?? '0') === '0' ? 'exhausted' : 'retry_later';
    }
  }
}
