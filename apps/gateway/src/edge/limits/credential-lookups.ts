import { type RateLimiter, TooManyRequestsError } from '#application';
import { StoreUnavailableError, withStoreTimeout } from '#kernel';
import { nodeTimers } from '#runtime';
import { ReadModelIncompleteError, ReadModelLaggingError, UnauthorizedError } from '../errors/errors.ts';
import { toNetwork } from '../network/client-addresses.ts';
import { READ_MODEL_WAIT_MS } from '../reading/read-model-reader.ts';

/** Maximum number of queued lookups. Further lookups are rejected. */
const MAX_QUEUE_LENGTH = 100;
const RETRY_AFTER_SECONDS = 1;
/** How long a queued lookup waits for the read models, which always lag a little while events are appended. */
const QUEUED_READ_MODEL_WAIT_MS = 200;
/** Maximum time in the queue and for the lookup together, so that callers get a response within five seconds. */
const QUEUE_TIMEOUT_MS = 4_500;

/**
 * Limits lookups of invalid credentials by network address. An address with too many invalid credentials can still use
 * valid ones, because other callers may share it. But its lookups of uncached credentials share one queue with those of
 * all such addresses, and run one at a time. So a flood occupies only one database connection.
 */
export class CredentialLookups {
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(
    private readonly limits: RateLimiter,
    private readonly queueTimeoutMs = QUEUE_TIMEOUT_MS,
  ) {}

  /**
   * @param isCached whether this process has cached the owner of the credential
   * @param lookup receives the maximum time to wait for the read models, in milliseconds
   * @throws errors of `lookup`; TooManyRequestsError if the queue is full, or instead of UnauthorizedError if the
   * address has exceeded its limit; StoreUnavailableError if a queued lookup took too long, or instead of
   * UnauthorizedError if the counters are unavailable
   */
  async run<T>(ip: string, isCached: boolean, lookup: (timeoutMs: number) => Promise<T>): Promise<T> {
    const address = toNetwork(ip);
    try {
      const isQueued = !isCached && this.limits.isExceeded('wrong credentials of an address', address);
      return await (isQueued ? this.enqueue(() => lookup(QUEUED_READ_MODEL_WAIT_MS)) : lookup(READ_MODEL_WAIT_MS));
    } catch (error) {
      const count = () => this.limits.count('wrong credentials of an address', address);
      if (error instanceof UnauthorizedError) await count();
      // The credential may be valid, so this error is not replaced by TooManyRequestsError. It still counts towards the
      // limit.
      if (error instanceof ReadModelLaggingError || error instanceof ReadModelIncompleteError)
        await count().catch(() => {}); // without a count, only the limit is less strict
      throw error;
    }
  }

  private enqueue<T>(lookup: () => Promise<T>): Promise<T> {
    if (this.waiting >= MAX_QUEUE_LENGTH)
      throw new TooManyRequestsError(
        'Too many invalid credentials from your IP address; retry later',
        RETRY_AFTER_SECONDS,
      );
    this.waiting++;
    let hasTimedOut = false;
    const start = () => {
      if (!hasTimedOut) return lookup();
      throw new StoreUnavailableError('the queue of credential lookups timed out');
    };
    const result = this.last.then(start).finally(() => this.waiting--);
    this.last = result.catch(() => {}); // the caller of the lookup gets its error
    return withStoreTimeout(nodeTimers, this.queueTimeoutMs, result, {
      onTimeout: () => {
        hasTimedOut = true;
      },
    });
  }
}
