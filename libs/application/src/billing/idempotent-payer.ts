import type { Charge } from '#domain';
import { Rejection } from '#kernel';
import { UpstreamError } from '../errors.ts';
import { type Hold, type HoldRelease, type HoldRequest, type Payer, PayerDecorator } from './payer.ts';

/** What this process knows about the money of a request. `open` includes holds whose outcome is unknown. */
export type ChargeState = 'none' | 'open' | 'charged' | 'released';

/** Rejections because another hold has the same id; whether that hold was charged is unknown here. */
const HOLD_EXISTS_CODES: ReadonlySet<string> = new Set(['hold_conflict', 'hold_resolved']);

/**
 * Pays for a request whose idempotency key is claimed. It confirms the claim once money is held, before the hold may be
 * used. It also records how the hold ended, so that no use case has to report whether it charged.
 */
export class IdempotentPayer extends PayerDecorator {
  private state: ChargeState = 'none';

  /** @param confirm called once money is held; throws if the request must not be served */
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
      const failure = new UpstreamError('not_served', 'The request may be served by another gateway');
      await this.release(hold, { failure, attempts: [] });
      throw error;
    });
    return hold;
  }

  override async settle(hold: Hold, charge: Charge, options: { readonly isDelivered: boolean }) {
    const charged = await this.payer.settle(hold, charge, options);
    this.state = 'charged';
    return charged;
  }

  override async release(hold: Hold, details: HoldRelease): Promise<void> {
    await this.payer.release(hold, details);
    this.state = 'released';
  }
}
