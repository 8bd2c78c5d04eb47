import { ACCOUNT, type AccountState, accountDecider, calculateMaxSpendable, calculateSpendable } from '#domain';
import { money, Rejection, type StreamStateReader, toStreamName } from '#kernel';
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
    private readonly accounts: Accounts & StreamStateReader<AccountState>,
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

  /** Makes the same decision as `hold`, without appending its event. */
  async assertAffordable(request: HoldRequest): Promise<void> {
    const state = await this.accounts.read(this.caller.accountId);
    accountDecider.decide(this.createHoldCommand(request, this.dependencies.clock.nowMs() + request.lifetimeMs), state);
  }

  async hold(request: HoldRequest): Promise<Hold> {
    const { holdId, lifetimeMs } = request;
    const { accountId, keyId } = this.caller;
    const expiresAt = this.dependencies.clock.nowMs() + lifetimeMs;
    const command = this.createHoldCommand(request, expiresAt);
    const { at } = command.data;
    const { events, state, revision } = await this.acquireHold({ holdId, expiresAt }, () =>
      this.accounts.run(accountId, command, this.createCause(holdId)),
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

  private createHoldCommand({ holdId, query, minAmount, maxAmount, partial }: HoldRequest, expiresAt: number) {
    const { clock, getProcessId, lossLimit } = this.dependencies;
    const holdLimits = {
      holdId,
      keyId: this.caller.keyId,
      query,
      minAmount,
      maxAmount,
      partialHold: partial,
      lossLimit,
    };
    const data = { ...holdLimits, owner: getProcessId(), expiresAt: clock.toInstant(expiresAt), at: clock.now() };
    return { type: 'HoldFunds', data } as const;
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
