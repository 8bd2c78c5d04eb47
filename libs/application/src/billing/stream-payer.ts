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
/** What asking again cannot change while this process lives. */
const FINAL_ERRORS = [Rejection, UnknownEventError, AppendTooLargeError];

/**
 * When a hold is looked for of which the store did not say whether it is there: soon, because its client may come again at once, and
 * what it holds is then missing; and then ever more seldom.
 */
const UNCONFIRMED_POLL_DELAYS_MS = [500, 5_000, 10_000, 20_000, 40_000] as const;
const MAX_POLL_DELAY_MS = 60_000;
const UNCONFIRMED_HOLD_FAILURE = {
  errorCode: 'not_served',
  reason: 'The books did not say in time that the money was held',
} as const;

/**
 * The id of this process, for the holds that it takes: when it has died, they are ended.
 * @throws StoreUnavailableError while others may take it for dead
 */
export type GetProcessId = () => string;

/** What payers take holds with. */
export interface PayerDependencies {
  readonly holdCommands: HoldCommandRouter;
  readonly clock: Clock;
  readonly getProcessId: GetProcessId;
  /** What the house bears for an account in an hour; any amount where this is left out. */
  readonly lossLimit?: PicoUsd | undefined;
}

/** A payer with a stream of its own, whose holds end the same way whatever kind it is of. */
export abstract class StreamPayer implements Payer {
  constructor(protected readonly dependencies: PayerDependencies) {}

  abstract readonly id: string;
  /** Who asks, as facts name it. */
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
    // It was settled by the same command before, whose answer was lost.
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
   * Takes a hold. Where the store does not say whether it is there, who asks is told that the store is away, and the hold is
   * released once the store says: nobody else would end it before it expires.
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
   * What was sent is not lost because it is not there: a server that was frozen stores it when it wakes up, and a leader without its
   * quorum answers reads long before it has stored what it was sent. So it is looked for until it would have expired.
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
        polls = 0; // the store is away: it is asked again soon, for what it has stored by then
      }
    }
  }

  /** A hold has the id of its request. */
  protected createCause(holdId: string): Cause {
    return createRootCause(this.actor, holdId);
  }

  /**
   * Changes a hold, also when the store is away for a while, or refuses what it will take again once somebody has seen to
   * it. Nothing is given up before the hold has expired: it then ends by itself, and what was served is unpaid.
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
