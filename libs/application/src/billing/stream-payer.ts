import { setTimeout as delay } from 'node:timers/promises';
import { type Charge, getHoldResolution } from '#domain';
import {
  AppendTooLargeError,
  type Cause,
  createRootCause,
  money,
  type PicoUsd,
  Rejection,
  UnknownEventError,
  UnknownOutcomeError,
  ZERO_USD,
} from '#kernel';
import type { Clock } from '../clock.ts';
import type { HoldCommandRouter } from './hold-commands.ts';
import type { Hold, HoldExtensionRequest, HoldRelease, HoldRequest, Payer } from './payer.ts';

const MIN_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 5_000;
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
  /**
   * Maximum cost that the operator absorbs per account and hour, in addition to a share of the charges; unlimited if
   * undefined.
   */
  readonly lossLimit?: PicoUsd | undefined;
}

/** A payer with its own stream. Its holds end in the same way for every kind of payer. */
export abstract class StreamPayer implements Payer {
  constructor(protected readonly dependencies: PayerDependencies) {}

  abstract readonly id: string;
  /** The actor that events record. */
  protected abstract readonly actor: string;

  abstract hold(request: HoldRequest): Promise<Hold>;

  abstract extend(hold: Hold, extension: HoldExtensionRequest): Promise<Hold | 'retry_later' | 'exhausted' | 'expired'>;

  async settle(hold: Hold, charge: Charge): Promise<PicoUsd> {
    const { holdCommands, clock } = this.dependencies;
    const command = { type: 'SettleHold', data: { holdId: hold.holdId, charge, at: clock.now() } } as const;
    const { events, state } = await this.retryUntilExpiry(hold, () =>
      holdCommands.run(this.id, command, this.createCause(hold.holdId)),
    );
    const settled = events.find((event) => event.type === 'HoldSettled');
    if (settled) return money.parseJsonAmount(settled.data.charged);
    // If nothing is appended although the hold is settled, an earlier attempt settled it and its response was lost.
    const isSettled = events.length === 0 && getHoldResolution(hold.holdId, state) === 'settled';
    return isSettled ? money.min(money.parseJsonAmount(charge.price), hold.amount) : ZERO_USD;
  }

  async release(hold: Hold, { failure, attempts, absorbed }: HoldRelease): Promise<void> {
    const { holdCommands, clock } = this.dependencies;
    const details = { errorCode: failure.code, reason: failure.message, attempts, ...(absorbed ? { absorbed } : {}) };
    const command = { type: 'ReleaseHold', data: { holdId: hold.holdId, ...details, at: clock.now() } } as const;
    await this.retryUntilExpiry(hold, () => holdCommands.run(this.id, command, this.createCause(hold.holdId)));
  }

  /**
   * Places a hold. If the outcome is unknown, the caller gets the error, and the hold is released once the event store
   * has it. Otherwise that hold would reserve the money until it expires.
   */
  protected async acquireHold<T>(hold: Pick<Hold, 'holdId' | 'expiresAt'>, acquire: () => Promise<T>): Promise<T> {
    try {
      return await acquire();
    } catch (error) {
      if (error instanceof UnknownOutcomeError) void this.releaseUnconfirmed(hold);
      throw error;
    }
  }

  /**
   * Tries to release a hold until that succeeds, is rejected for good, or was tried after the hold's expiry. A hold
   * that is missing may be stored later. A server that was frozen stores the append when it resumes. A leader without a
   * quorum serves reads long before it has stored the append.
   */
  private async releaseUnconfirmed({ holdId, expiresAt }: Pick<Hold, 'holdId' | 'expiresAt'>): Promise<void> {
    const { holdCommands, clock } = this.dependencies;
    for (let polls = 0; clock.nowMs() < expiresAt; polls++) {
      await delay(UNCONFIRMED_POLL_DELAYS_MS[polls] ?? MAX_POLL_DELAY_MS, undefined, { ref: false });
      const data = { holdId, ...UNCONFIRMED_HOLD_FAILURE, attempts: [], at: clock.now() };
      try {
        await holdCommands.run(this.id, { type: 'ReleaseHold', data }, this.createCause(holdId));
        return;
      } catch (error) {
        if (error instanceof Rejection && error.code === 'hold_not_found') continue;
        if (FINAL_ERRORS.some((ErrorClass) => error instanceof ErrorClass)) return;
        polls = 0; // the store is unavailable: try again soon, since it may have stored the hold by then
      }
    }
  }

  /** The id of a hold is the id of its request. */
  protected createCause(holdId: string): Cause {
    return createRootCause(this.actor, holdId);
  }

  /**
   * Retries a change of a hold until it succeeds, is rejected for good, or the hold has expired. The event store may be
   * unavailable, or reject appends until an operator has fixed it. An expired hold ends by itself; what was served then
   * stays unpaid.
   */
  protected async retryUntilExpiry<T>(hold: Hold, change: () => Promise<T>): Promise<T> {
    for (let wait = MIN_BACKOFF_MS; ; wait = Math.min(2 * wait, MAX_BACKOFF_MS)) {
      try {
        return await change();
      } catch (error) {
        const isFinal = FINAL_ERRORS.some((ErrorClass) => error instanceof ErrorClass);
        if (isFinal || this.dependencies.clock.nowMs() >= hold.expiresAt) throw error;
        await delay(wait);
      }
    }
  }
}
