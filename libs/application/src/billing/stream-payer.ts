import { type Charge, getHoldResolution, type HoldCommand, type HoldEvent, type RiskLimits } from '#domain';
import {
  AppendTooLargeError,
  type Cause,
  createRootCause,
  type EventReader,
  type FailedAttempt,
  isProgrammingError,
  money,
  NO_STREAM,
  type PicoUsd,
  Rejection,
  type Runtime,
  retry,
  type StoredEvent,
  UnknownEventError,
  UnknownOutcomeError,
  type WaitOptions,
  withStoreTimeout,
  ZERO_USD,
} from '#kernel';
import type { Clock } from '../clock.ts';
import { type HoldCommandResult, type HoldCommandRouter, MAX_PLACEMENT_MS } from './hold-commands.ts';
import type { Hold, HoldExtensionRequest, HoldRelease, HoldRequest, Payer, SettleOptions } from './payer.ts';
import type { PendingWrites } from './pending-writes.ts';

const BACKOFF = { minMs: 500, maxMs: 5_000 };
/**
 * How long a response waits for the event store, from when the store stopped accepting writes of its request. Then the
 * client gets 503, or the end of a stream that has started.
 */
const MAX_WAIT_MS = 8_000;
/** Minimum time for one further write of a request that has used up its wait. */
const MIN_WAIT_MS = 500;
/** Errors that a retry by this process cannot change. */
const FINAL_ERRORS = [Rejection, UnknownEventError, AppendTooLargeError];

/**
 * Delays before each attempt to release a hold that the event store did not confirm. The first attempt is early: if the
 * client retries at once, the retry may lack the money that this hold reserves. The delays increase while the hold is
 * missing.
 */
const UNCONFIRMED_POLL_DELAYS_MS = [500, 5_000, 10_000, 20_000, 40_000] as const;
const MAX_POLL_DELAY_MS = 60_000;
const UNCONFIRMED_HOLD_FAILURE = {
  errorCode: 'not_served',
  reason: 'The hold was not confirmed in time',
} as const;

/**
 * Returns the id of this process, which its holds record as their owner. When the process has died, its holds are
 * ended.
 * @throws StoreUnavailableError while other processes may consider this one dead
 */
export type GetProcessId = () => string;

export interface PayerDependencies {
  readonly holdCommands: HoldCommandRouter;
  readonly clock: Clock;
  readonly getProcessId: GetProcessId;
  /** Reads the events of payers. */
  readonly events: Pick<EventReader, 'read'>;
  readonly runtime: Runtime;
  readonly pendingWrites: PendingWrites;
  /** What the operator may lose for one account at most; unlimited if undefined. */
  readonly riskLimits?: RiskLimits | undefined;
  /** Logs each retry of a change of a hold, in addition to `runtime.reportError`, which does not name the hold. */
  readonly logRetry?: ((retry: HoldRetry) => void) | undefined;
}

type HoldChange = 'charge' | 'release' | 'extension' | 'absorption';

/** A change of a hold that has failed and will be tried again. */
export interface HoldRetry extends FailedAttempt {
  readonly holdId: string;
  readonly payer: string;
  readonly change: HoldChange;
  readonly error: unknown;
}

/** A payer with its own stream. Its holds end in the same way for every kind of payer. */
export abstract class StreamPayer implements Payer {
  /** Revision of the payer's stream after the hold was placed. */
  protected heldAtRevision = NO_STREAM;
  /** When the first write of the request failed, if none has succeeded since; from `runtime.now()`. */
  private unavailableSinceMs: number | undefined;

  constructor(protected readonly dependencies: PayerDependencies) {}

  abstract readonly id: string;
  /** The actor that events record. */
  protected abstract readonly actor: string;

  abstract assertAffordable(request: HoldRequest): Promise<void>;

  abstract hold(request: HoldRequest): Promise<Hold>;

  abstract extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'>;

  async settle(hold: Hold, charge: Charge, { isDelivered, query }: SettleOptions): Promise<PicoUsd> {
    const data = { holdId: hold.holdId, charge, query, at: this.dependencies.clock.now() };
    const settleHold = () => this.endHold({ type: 'SettleHold', data }, ['HoldSettled']);
    const { pendingWrites } = this.dependencies;
    const change = this.change('charge', hold, isDelivered, settleHold);
    pendingWrites.track(hold.holdId, change.work);
    const unrecorded = this.createUnrecordedReporter(hold, charge);
    try {
      const { events, state } = await change.result;
      const settled = events.find((event) => event.type === 'HoldSettled');
      if (settled) return money.parseJsonAmount(settled.data.charged);
      // If nothing is appended although the hold is settled, an earlier attempt settled it and its response was lost.
      const isSettled = events.length === 0 && state && getHoldResolution(hold.holdId, state) === 'settled';
      return isSettled ? money.min(money.parseJsonAmount(charge.price), hold.amount) : ZERO_USD;
    } catch (error) {
      const isOutcomeUnknown = change.hasTimedOut() || isProgrammingError(error);
      if (isDelivered || !isOutcomeUnknown) change.work.catch(unrecorded);
      else {
        const absorbing = change.work
          .catch(() => {}) // absorbing finds out whether the charge was stored
          .then(() => this.absorb(hold, charge))
          .catch(unrecorded);
        pendingWrites.track(hold.holdId, absorbing);
      }
      throw error;
    }
  }

  async release(hold: Hold, { failure, attempts, absorbed }: HoldRelease): Promise<void> {
    const { clock } = this.dependencies;
    const command = {
      type: 'ReleaseHold',
      data: {
        holdId: hold.holdId,
        errorCode: failure.code,
        reason: failure.message,
        attempts,
        ...(absorbed ? { absorbed } : {}),
        at: clock.now(),
      },
    } as const;
    const releaseHold = () => this.endHold(command, ['HoldReleased', 'HoldExpired']);
    const { work, result } = this.change('release', hold, true, releaseHold);
    this.dependencies.pendingWrites.track(hold.holdId, work);
    // Without a cost nothing is lost: the caller gets the error, or the retries have logged it, and the hold expires.
    work.catch(absorbed ? this.createUnrecordedReporter(hold, absorbed) : () => {});
    await result;
  }

  /**
   * Ends a hold. An account remembers a limited number of ended holds. If it does not know the hold, an earlier attempt
   * may have ended it, and its response was lost: then the result is the event of that attempt.
   * @param doneBy the events after which the command has nothing to do
   */
  private async endHold(
    command: Extract<HoldCommand, { type: 'SettleHold' | 'ReleaseHold' }>,
    doneBy: readonly HoldEnd['type'][],
  ): Promise<Pick<HoldCommandResult, 'events'> & Partial<HoldCommandResult>> {
    const { holdId } = command.data;
    try {
      return await this.dependencies.holdCommands.run(this.id, command, this.createCause(holdId));
    } catch (error) {
      if (!(error instanceof Rejection && error.code === 'hold_not_found')) throw error;
      const end = this.heldAtRevision === NO_STREAM ? undefined : await this.findHoldEnd(holdId);
      if (!end || !doneBy.includes(end.type)) throw error;
      return { events: [end] };
    }
  }

  /**
   * Ends the hold of a response that the customer did not get, and absorbs its charge. If the charge was stored
   * although that was not confirmed in time, reverses it. Tries until the store has recorded it, even after the expiry
   * of the hold: no other process knows that the response was not delivered.
   * @throws any error that a retry cannot change; the hold then expires, or stays settled if the charge was stored
   */
  private async absorb({ holdId }: Hold, charge: Charge): Promise<void> {
    const { holdCommands, clock } = this.dependencies;
    const run = (command: HoldCommand) => holdCommands.run(this.id, command, this.createCause(holdId));
    await this.retryChange(
      { change: 'absorption', holdId },
      async () => {
        try {
          await run({ type: 'AbsorbCharge', data: { holdId, charge, at: clock.now() } });
        } catch (error) {
          const end = error instanceof Rejection ? await this.findHoldEnd(holdId) : undefined;
          if (end?.type === 'ChargeReversed') return;
          if (end?.type !== 'HoldSettled') throw error;
          await run({ type: 'ReverseCharge', data: { settled: end.data, at: clock.now() } });
        }
      },
      () => true,
      { isBackground: true },
    );
  }

  /**
   * Returns the event that ended a hold of this payer, or the reversal of its charge, among the events since the hold
   * was placed.
   */
  private async findHoldEnd(holdId: string): Promise<HoldEnd | undefined> {
    let end: HoldEnd | undefined;
    for await (const batch of this.dependencies.events.read(this.id, this.heldAtRevision))
      for (const event of batch as readonly StoredEvent<HoldEvent>[])
        if (isHoldEnd(event) && event.data.holdId === holdId) end = event;
    return end;
  }

  /**
   * Returns an error handler that reports usage that could not be recorded. The provider invoices such usage, but the
   * ledger does not contain it. It does not count towards the loss limit of the account, because the account did not
   * cause the loss.
   */
  private createUnrecordedReporter({ holdId, payer }: Hold, charge: Charge) {
    const problem = `hold ${holdId} of ${payer}: usage of ${charge.cost} pUSD was not recorded`;
    return (error: unknown): void => this.dependencies.runtime.reportError(problem, error);
  }

  /**
   * Places a hold. If the outcome is unknown or confirmed too late, the caller gets the error, and the hold is released
   * once the event store has it. Otherwise that hold would reserve the money until it expires.
   */
  protected async acquireHold<T extends { readonly events: readonly unknown[] }>(
    hold: Pick<Hold, 'holdId' | 'expiresAt'>,
    acquire: () => Promise<T>,
  ): Promise<T> {
    const { runtime } = this.dependencies;
    const requestedAtMs = runtime.now();
    try {
      const acquired = await acquire();
      const hasTakenTooLong = acquired.events.length > 0 && runtime.now() - requestedAtMs >= MAX_PLACEMENT_MS;
      if (hasTakenTooLong) throw new UnknownOutcomeError('the event store recorded a hold too late');
      return acquired;
    } catch (error) {
      if (error instanceof UnknownOutcomeError) void this.releaseUnconfirmed(hold);
      throw error;
    }
  }

  /**
   * Tries to release a hold until that succeeds, is rejected for good, or was tried after the hold's expiry. A hold
   * that is missing may be stored later. A server that was frozen stores the append when it resumes. A leader without a
   * quorum serves reads long before it has stored the append. If this gives up, the hold expires; no provider was called.
   */
  private async releaseUnconfirmed({ holdId, expiresAt }: Pick<Hold, 'holdId' | 'expiresAt'>): Promise<void> {
    const { holdCommands, clock, runtime } = this.dependencies;
    for (let polls = 0; clock.nowMs() < expiresAt; polls++) {
      await runtime.sleep(UNCONFIRMED_POLL_DELAYS_MS[polls] ?? MAX_POLL_DELAY_MS, { isBackground: true });
      const data = { holdId, ...UNCONFIRMED_HOLD_FAILURE, attempts: [], at: clock.now() };
      try {
        await holdCommands.run(this.id, { type: 'ReleaseHold', data }, this.createCause(holdId));
        return;
      } catch (error) {
        if (error instanceof Rejection && error.code === 'hold_not_found') continue;
        this.reportProgrammingError('release', holdId, error);
        if (isFinal(error)) return;
        runtime.reportError('an unconfirmed hold could not be released; retrying', error);
        polls = 0; // the store is unavailable: try again soon, since it may have stored the hold by then
      }
    }
  }

  /** The id of a hold is the id of its request. */
  protected createCause(holdId: string): Cause {
    return createRootCause(this.actor, holdId);
  }

  /**
   * Changes a hold, and retries until that succeeds, is rejected for good, or the hold has expired. The event store may
   * be unavailable, or reject appends until an operator has fixed it. A programming error is reported and not retried.
   *
   * After the last attempt, the hold stays as it is stored. An open hold is ended by the sweep of expired holds: the
   * payer gets the money back, and nothing is charged. What was served then stays unpaid, and the ledger does not
   * contain its cost: the report of unrecorded usage names the hold and the cost. The exception is the charge of a response that
   * was not delivered, which `settle` absorbs. If an extension has failed, the charge that follows takes at most what is
   * held, and the rest is booked as an overrun.
   * @param continues whether the retries continue although nobody waits for them any more
   * @returns `work`: the change with all its retries. `result`: the same for a caller that waits. It rejects with
   *   StoreUnavailableError once the store has not accepted writes of this request for `MAX_WAIT_MS` in total;
   *   `hasTimedOut` then returns true
   */
  protected change<T>(
    change: HoldChange,
    hold: Pick<Hold, 'holdId' | 'expiresAt'>,
    continues: boolean,
    attempt: () => Promise<T>,
  ): Change<T> {
    const { clock, runtime } = this.dependencies;
    let hasTimedOut = false;
    const shouldContinue = () => clock.nowMs() < hold.expiresAt && (continues || !hasTimedOut);
    const work = this.retryChange({ change, holdId: hold.holdId }, attempt, shouldContinue);
    const problem = 'the event store did not record the end of the request in time';
    const result = withStoreTimeout(runtime, this.remainingWaitMs, work, {
      problem,
      onTimeout: () => {
        hasTimedOut = true;
      },
    });
    return { work, result, hasTimedOut: () => hasTimedOut };
  }

  /** A request waits only once: what an extension of its hold has used up, its charge does not wait for again. */
  private get remainingWaitMs(): number {
    const waitedMs =
      this.unavailableSinceMs === undefined ? 0 : this.dependencies.runtime.now() - this.unavailableSinceMs;
    return Math.max(MAX_WAIT_MS - waitedMs, MIN_WAIT_MS);
  }

  private async retryChange<T>(
    { change, holdId }: Pick<HoldRetry, 'change' | 'holdId'>,
    attempt: () => Promise<T>,
    shouldContinue: () => boolean,
    waitOptions: WaitOptions = {},
  ): Promise<T> {
    const { runtime, logRetry } = this.dependencies;
    let startedAtMs = 0;
    const runAttempt = () => {
      startedAtMs = runtime.now();
      return attempt();
    };
    try {
      const result = await retry(runAttempt, {
        ...BACKOFF,
        chance: runtime.chance,
        sleep: (milliseconds) => runtime.sleep(milliseconds, waitOptions),
        shouldRetry: (error) => !isFinal(error),
        shouldContinue,
        onRetry: (error, failedAttempt) => {
          this.unavailableSinceMs ??= startedAtMs;
          // The same text for all holds: during an outage this is one line a minute, and not one for each hold.
          runtime.reportError(`the ${change} of a hold was not recorded; retrying`, error);
          logRetry?.({ holdId, payer: this.id, change, ...failedAttempt, error });
        },
      });
      this.unavailableSinceMs = undefined;
      return result;
    } catch (error) {
      this.reportProgrammingError(change, holdId, error);
      throw error;
    }
  }

  private reportProgrammingError(change: HoldChange, holdId: string, error: unknown): void {
    if (!isProgrammingError(error)) return;
    this.dependencies.runtime.reportError(`the ${change} of hold ${holdId} of ${this.id} failed unexpectedly`, error);
  }
}

/** Whether a retry by this process would fail in the same way. */
function isFinal(error: unknown): boolean {
  return isProgrammingError(error) || FINAL_ERRORS.some((ErrorClass) => error instanceof ErrorClass);
}

const HOLD_ENDS = ['HoldSettled', 'HoldReleased', 'HoldExpired', 'ChargeReversed'] as const;

type HoldEnd = Extract<HoldEvent, { type: (typeof HOLD_ENDS)[number] }>;

function isHoldEnd(event: HoldEvent): event is HoldEnd {
  return (HOLD_ENDS as readonly string[]).includes(event.type);
}

/** A change of a hold that is being made. */
interface Change<T> {
  readonly work: Promise<T>;
  readonly result: Promise<T>;
  hasTimedOut(): boolean;
}
