/** Limits how often models of the free tier may be called, since no price limits their use. */
import type { RateLimiter } from '../rate-limiter.ts';
import { type Hold, type HoldRequest, type Payer, PayerDecorator } from './payer.ts';

/**
 * Counts requests that may be served by models of the free tier by account and by client address. Counting by account
 * is not sufficient, because creating accounts costs nothing.
 */
export class FreeModelLimits {
  constructor(private readonly rateLimiter: RateLimiter) {}

  /** Returns a payer that applies these limits. */
  wrapPayer(payer: Payer, address: () => string): Payer {
    return new LimitedPayer(payer, () => this.count(payer.id, address()));
  }

  /**
   * A request that one limit rejects is not counted for the limits after it.
   * @throws TooManyRequestsError if a limit is exceeded; StoreUnavailableError if the request could not be counted and
   *   must not be served
   */
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
    const isAnyFree = [request.query, ...(request.fallbacks ?? [])].some(({ free }) => free);
    return isAnyFree ? this.countRequest().then(() => this.payer.hold(request)) : this.payer.hold(request);
  }
}
