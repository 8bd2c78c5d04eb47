import { ACCOUNT, type AccountState, accountDecider, type Charge, calculateSpendable } from '#domain';
import { money, type PicoUsd, Rejection, type StreamStateReader, toStreamName, ZERO_USD } from '#kernel';
import type { Accounts } from '../streams.ts';
import type { HoldQueue } from './hold-queue.ts';
import {
  type Caller,
  type Hold,
  HoldAlreadyExistsError,
  type HoldExtensionRequest,
  type HoldRelease,
  type HoldRequest,
  type SettleOptions,
  toActor,
} from './payer.ts';
import { type PayerDependencies, StreamPayer } from './stream-payer.ts';

/** Pays from the balance of an account, within the spending limit of the API key if one was used. */
export class AccountPayer extends StreamPayer {
  constructor(
    dependencies: PayerDependencies,
    private readonly streams: {
      readonly accounts: Accounts & StreamStateReader<AccountState>;
      readonly queue: HoldQueue;
    },
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

  /** Makes the same decision as `hold`, without appending its event. A rejection for now is not one. */
  async assertAffordable(request: HoldRequest): Promise<void> {
    const state = await this.streams.accounts.read(this.caller.accountId);
    try {
      accountDecider.decide(this.createHoldCommand(request), state);
    } catch (error) {
      if (!(error instanceof Rejection && error.isTemporary)) throw error;
    }
  }

  async hold(request: HoldRequest): Promise<Hold> {
    const isFree = request.maxAmount === ZERO_USD;
    return isFree
      ? this.tryHold(request)
      : this.streams.queue.run(this.caller.accountId, (waiting) => this.tryHold(request, waiting), request);
  }

  private async tryHold(request: HoldRequest, waiting?: number): Promise<Hold> {
    const { holdId } = request;
    const { accountId, keyId } = this.caller;
    const command = this.createHoldCommand(request, waiting);
    const { at } = command.data;
    const expiresAt = Date.parse(command.data.expiresAt);
    const { events, state, revision } = await this.acquireHold({ holdId, expiresAt }, () =>
      this.streams.accounts.run(accountId, command, this.createCause(holdId)),
    );
    const held = events.find((event) => event.type === 'FundsHeld');
    if (!held) throw new HoldAlreadyExistsError(`Hold ${holdId} belongs to a running request`);
    this.heldAtRevision = revision;
    const { limitPrice, stopPrice } = held.data;
    return {
      holdId,
      payer: this.id,
      amount: money.parseJsonAmount(held.data.amount),
      availableAfter: calculateSpendable(state, keyId, at),
      ...(limitPrice === undefined ? {} : { limitPrice: money.parseJsonAmount(limitPrice) }),
      ...(stopPrice === undefined ? {} : { stopPrice: money.parseJsonAmount(stopPrice) }),
      expiresAt,
    };
  }

  private createHoldCommand(request: HoldRequest, waiting?: number) {
    const { holdId, query, minAmount, maxAmount, partial, lifetimeMs, dedupeSeconds } = request;
    const fallbackModels = request.fallbacks?.map(({ model }) => model);
    const partialHold = waiting === undefined ? partial : (request.updatePartial?.() ?? partial);
    const { clock, getProcessId, riskLimits } = this.dependencies;
    const { keyId } = this.caller;
    const expiresAt = clock.toInstant(clock.nowMs() + lifetimeMs);
    return {
      type: 'HoldFunds',
      data: {
        holdId,
        keyId,
        query,
        fallbackModels,
        dedupeSeconds,
        minAmount,
        maxAmount,
        partialHold,
        waiting,
        riskLimits,
        owner: getProcessId(),
        expiresAt,
        at: clock.now(),
      },
    } as const;
  }

  async extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'> {
    const { holdId } = hold;
    const { clock, riskLimits } = this.dependencies;
    const data = { holdId, ...extension, knownAmount: hold.amount, riskLimits, at: clock.now() };
    const extend = () =>
      this.streams.accounts.run(this.caller.accountId, { type: 'ExtendHold', data }, this.createCause(holdId));
    try {
      const { state } = await this.change('extension', hold, false, extend).result;
      if (extension.stopPrice !== undefined) this.streams.queue.wake(this.caller.accountId);
      const { amount, stopPrice } = state.holds.get(holdId) ?? hold;
      return { ...hold, amount, stopPrice };
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      if (error.code === 'hold_resolved') return 'expired';
      return (error.details.held ?? '0') === '0' ? 'exhausted' : 'retry_later';
    }
  }

  override settle(hold: Hold, charge: Charge, options: SettleOptions): Promise<PicoUsd> {
    return super.settle(hold, charge, options).finally(() => this.streams.queue.wake(this.caller.accountId));
  }

  override release(hold: Hold, details: HoldRelease): Promise<void> {
    return super.release(hold, details).finally(() => this.streams.queue.wake(this.caller.accountId));
  }
}
