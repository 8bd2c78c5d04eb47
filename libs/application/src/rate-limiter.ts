/** Operations that cost nothing, with the subject that they are counted by. Paid operations are not counted. */
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

/** Limits how often operations that cost nothing are performed, on all gateways together. */
export abstract class RateLimiter {
  /**
   * Counts one operation, unless this process already knows that the limit is exceeded.
   * @param subject address, account or key; omitted for a limit that all callers share
   * @throws TooManyRequestsError if the limit is exceeded; StoreUnavailableError if the operation could not be counted
   *   and must not be performed
   */
  abstract count(key: RateLimitKey, subject?: string): Promise<void>;

  /** Whether this process knows, without a query, that one more operation would exceed the limit. */
  abstract isExceeded(key: RateLimitKey, subject: string): boolean;
}

/** The limit of an operation that costs nothing, or a storage quota, is exceeded. */
export class TooManyRequestsError extends Error {
  override readonly name = 'TooManyRequestsError';

  constructor(
    message: string,
    readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}
