/** What costs nothing, and by whom it is counted. What a balance pays for is not counted. */
export type RateLimitKey =
  | 'accounts of an address'
  | 'invoices of an address'
  | 'invoices of an account'
  | 'invoices of a key'
  | 'changes of an account'
  | 'wrong credentials of an address'
  | 'requests without payment of an address'
  | 'challenges'
  | 'free requests of an account in a minute'
  | 'free requests of an account in a day'
  | 'free requests of an address in a day';

/** Bounds how often what costs nothing is given, on all gateways together. */
export abstract class RateLimiter {
  /**
   * Counts one, also where it is one too many.
   * @param subject address, account or key; what everybody shares is nobody's
   * @throws TooManyRequestsError; StoreUnavailableError when it cannot be counted: then it is not given
   */
  abstract count(key: RateLimitKey, subject?: string): Promise<void>;

  /** Whether this process knows, without asking, that one more would be too many. */
  abstract isExceeded(key: RateLimitKey, subject: string): boolean;
}

/** More is asked for than is given for nothing. */
export class TooManyRequestsError extends Error {
  override readonly name = 'TooManyRequestsError';

  constructor(
    message: string,
    readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}
