import { type RateLimiter, TooManyRequestsError } from '#application';
import { StoreUnavailableError, withStoreTimeout } from '#kernel';
import { ReadModelIncompleteError, ReadModelLaggingError, UnauthorizedError } from '../errors/errors.ts';
import { toNetwork } from '../network/client-addresses.ts';
import { READ_MODEL_WAIT_MS } from '../reading/read-model-reader.ts';

/** Look-ups that wait for their turn. */
const MAX_QUEUE_LENGTH = 100;
const RETRY_AFTER_SECONDS = 1;
/** How long the read models are waited for by whose turn it is: while facts are appended they are a little late at every moment. */
const QUEUED_READ_MODEL_WAIT_MS = 200;
/** Longer nobody waits for a turn and for what is looked up in it: whoever asks is to be told within five seconds. */
const QUEUE_TIMEOUT_MS = 4_500;

/**
 * Look-ups of credentials. Wrong ones are counted by the address that they come from. One that has shown too many still has
 * good ones found, since others may share it: but those that are not known here wait for their turn, one at a time of all
 * such addresses together, and so a flood has one connection to the database and leaves the others to everybody else.
 */
export class CredentialLookups {
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(
    private readonly limits: RateLimiter,
    private readonly queueTimeoutMs = QUEUE_TIMEOUT_MS,
  ) {}

  /**
   * @param isCached the credential was good here before
   * @param lookup is told for how many milliseconds it may wait for the read models
   * @throws what the look-up throws; TooManyRequestsError where that is one wrong credential too many, or too many wait;
   *   StoreUnavailableError to who has waited for too long
   */
  async run<T>(ip: string, isCached: boolean, lookup: (timeoutMs: number) => Promise<T>): Promise<T> {
    const address = toNetwork(ip);
    try {
      const isQueued = !isCached && this.limits.isExceeded('wrong credentials of an address', address);
      return await (isQueued ? this.enqueue(() => lookup(QUEUED_READ_MODEL_WAIT_MS)) : lookup(READ_MODEL_WAIT_MS));
    } catch (error) {
      const count = () => this.limits.count('wrong credentials of an address', address);
      if (error instanceof UnauthorizedError) await count();
      // It may be good, so it is not said that it is one too many; but whoever tries many has them wait for their turn.
      if (error instanceof ReadModelLaggingError || error instanceof ReadModelIncompleteError)
        await count().catch(() => {});
      throw error;
    }
  }

  private enqueue<T>(lookup: () => Promise<T>): Promise<T> {
    if (this.waiting >= MAX_QUEUE_LENGTH)
      throw new TooManyRequestsError('Too many wrong credentials come from your address', RETRY_AFTER_SECONDS);
    this.waiting++;
    const enqueuedAt = performance.now();
    const start = () => {
      if (performance.now() - enqueuedAt < this.queueTimeoutMs) return lookup();
      throw new StoreUnavailableError('others were looked up for too long');
    };
    const result = this.last.then(start).finally(() => this.waiting--);
    this.last = result.catch(() => {});
    return withStoreTimeout(this.queueTimeoutMs, result);
  }
}
