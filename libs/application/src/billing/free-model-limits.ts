/** Free models are bounded by how often they may be asked, since no price bounds them. */
import type { RateLimiter } from '../rate-limiter.ts';
import { type Hold, type HoldRequest, type Payer, PayerDecorator } from './payer.ts';

/** Counts by the account, and by the address that it comes from: accounts are free to make. */
export class FreeModelLimits {
  constructor(private readonly rateLimiter: RateLimiter) {}

  /** The same payer, within the limits where what it pays for costs nothing. */
  wrapPayer(payer: Payer, address: () => string): Payer {
    return new LimitedPayer(payer, () => this.count(payer.id, address()));
  }

  /** What one limit refuses is not counted by the next. @throws TooManyRequestsError, StoreUnavailableError */
  private async count(account: string, address: string): Promise<void> {
    await this.rateLimiter.count('free requests of an account in a minute', account);
    await this.rateLimiter.count('free requests of an account in a day', account);
    await this.rateLimiter.count('free requests of an address in a day', address);
  }
}

class LimitedPayer extends PayerDecorator {
  constructor(
    payer: Payer,
    private readonly countRequest: () => Promise<void>,
  ) {
    super(payer);
  }

  override hold(request: HoldRequest): Promise<Hold> {
    return request.query.free ? this.countRequest().then(() => this.payer.hold(request)) : this.payer.hold(request);
  }
}
