import type { Charge } from '#domain';
import { Rejection } from '#kernel';
import { UpstreamError } from '../errors.ts';
import { type Hold, type HoldRelease, type HoldRequest, type Payer, PayerDecorator } from './payer.ts';

/** What this process knows of the money of a request. `open` also means: how it ended could not be found out. */
export type ChargeState = 'none' | 'open' | 'charged' | 'released';

/** Rejections that mean another hold with the same id, whose fate is not known here. */
const HOLD_EXISTS_CODES: ReadonlySet<string> = new Set(['hold_conflict', 'hold_resolved']);

/**
 * A payer of a request whose idempotency key is claimed: the claim is confirmed once the money is held, and before the
 * hold may be used; and how the money ended is noted, so that no use case has to report whether it charged.
 */
export class IdempotentPayer extends PayerDecorator {
  private state: ChargeState = 'none';

  /** @param confirm what must hold, once there is money, before it may be used. It throws where it does not */
  constructor(
    payer: Payer,
    private readonly confirm: () => Promise<void>,
  ) {
    super(payer);
  }

  get chargeState(): ChargeState {
    return this.state;
  }

  async hold(request: HoldRequest): Promise<Hold> {
    this.state = 'open';
    const hold = await this.payer.hold(request).catch((error) => {
      if (error instanceof Rejection && !HOLD_EXISTS_CODES.has(error.code)) this.state = 'none';
      throw error;
    });
    await this.confirm().catch(async (error) => {
      const failure = new UpstreamError('not_served', 'It is served elsewhere, or may be');
      await this.release(hold, { failure, attempts: [] });
      throw error;
    });
    return hold;
  }

  override async settle(hold: Hold, charge: Charge) {
    const charged = await this.payer.settle(hold, charge);
    this.state = 'charged';
    return charged;
  }

  override async release(hold: Hold, details: HoldRelease): Promise<void> {
    await this.payer.release(hold, details);
    this.state = 'released';
  }
}
