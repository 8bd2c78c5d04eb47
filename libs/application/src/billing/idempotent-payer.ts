import type { Charge } from '#domain';
import { Rejection, type Timers } from '#kernel';
import { UpstreamError } from '../errors.ts';
import {
  type Hold,
  type HoldRelease,
  type HoldRequest,
  type Payer,
  PayerDecorator,
  type SettleOptions,
} from './payer.ts';

/** What this process knows about the money of a request. `open` includes holds whose outcome is unknown. */
export type ChargeState = 'none' | 'open' | 'charged' | 'released';

/** Rejections because another hold has the same id; whether that hold was charged is unknown here. */
const HOLD_EXISTS_CODES: ReadonlySet<string> = new Set(['hold_conflict', 'hold_resolved']);

/** A request can wait for money longer than the lease of its claim lasts. */
const RENEW_INTERVAL_MS = 4_000;

/** The claim of a request whose money is not held yet. */
export interface PendingClaim {
  /** Extends the lease while the request waits for money. A failure is ignored: the lease may end then. */
  renew(): Promise<unknown>;
  /** Called once money is held. @throws Error if the request must not be served */
  confirm(): Promise<void>;
}

/**
 * Pays for a request whose idempotency key is claimed. It confirms the claim once money is held, before the hold may be
 * used. It also records how the hold ended, so that no use case has to report whether it charged.
 */
export class IdempotentPayer extends PayerDecorator {
  private state: ChargeState = 'none';

  constructor(
    payer: Payer,
    private readonly claim: PendingClaim,
    private readonly timers: Pick<Timers, 'sleep'>,
  ) {
    super(payer);
  }

  get chargeState(): ChargeState {
    return this.state;
  }

  async hold(request: HoldRequest): Promise<Hold> {
    this.state = 'open';
    const waiting = new AbortController();
    void this.renewUntil(waiting.signal);
    const hold = await this.payer
      .hold(request)
      .catch((error) => {
        if (error instanceof Rejection && !HOLD_EXISTS_CODES.has(error.code)) this.state = 'none';
        throw error;
      })
      .finally(() => waiting.abort());
    await this.claim.confirm().catch(async (error) => {
      const failure = new UpstreamError('not_served', 'The request may be served by another gateway');
      await this.release(hold, { failure, attempts: [] });
      throw error;
    });
    return hold;
  }

  private async renewUntil(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      await this.timers.sleep(RENEW_INTERVAL_MS, { signal: ended, isBackground: true });
      // renewed again at the next interval, or another gateway takes over
      if (!ended.aborted) await this.claim.renew().catch(() => {});
    }
  }

  override async settle(hold: Hold, charge: Charge, options: SettleOptions) {
    const charged = await this.payer.settle(hold, charge, options);
    this.state = 'charged';
    return charged;
  }

  override async release(hold: Hold, details: HoldRelease): Promise<void> {
    await this.payer.release(hold, details);
    this.state = 'released';
  }
}
