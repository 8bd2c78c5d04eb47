import { type RateLimiter, TooManyRequestsError } from '#application';
import { StoreUnavailableError, withStoreTimeout } from '#kernel';
import { ReadModelIncompleteError, ReadModelLaggingError, UnauthorizedError } from '../errors/errors.ts';
import { toNetwork } from '../network/client-addresses.ts';
import { READ_MODEL_WAIT_MS } from '../reading/read-model-reader.ts';

/** Look-ups that wait for their turn. */
const MOST_WAITING = 100;
const NEXT_TRY_SECONDS = 1;
/** How long the read models are waited for by whose turn it is: while facts are appended they are a little late at every moment. */
const IN_TURN_WAIT_MS = 200;
/** Longer nobody waits for a turn and for what is looked up in it: whoever asks is to be told within five seconds. */
const MOST_MS = 4_500;

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
    private readonly mostMs = MOST_MS,
  ) {}

  /**
   * @param known the credential was good here before
   * @param look is told for how many milliseconds it may wait for the read models
   * @throws what the look-up throws; TooManyRequestsError where that is one wrong credential too many, or too many wait;
   *   StoreUnavailableError to who has waited for too long
   */
  async make<T>(ip: string, known: boolean, look: (withinMs: number) => Promise<T>): Promise<T> {
    const address = toNetwork(ip);
    try {
      const waits = !known && this.limits.isExceeded('wrong credentials of an address', address);
      return await (waits ? this.inTurn(() => look(IN_TURN_WAIT_MS)) : look(READ_MODEL_WAIT_MS));
    } catch (error) {
      const count = () => this.limits.count('wrong credentials of an address', address);
      if (error instanceof UnauthorizedError) await count();
      // It may be good, so it is not said that it is one too many; but whoever tries many has them wait for their turn.
      if (error instanceof ReadModelLaggingError || error instanceof ReadModelIncompleteError)
        await count().catch(() => {});
      throw error;
    }
  }

  private inTurn<T>(look: () => Promise<T>): Promise<T> {
    if (this.waiting >= MOST_WAITING)
      throw new TooManyRequestsError('Too many wrong credentials come from your address', NEXT_TRY_SECONDS);
    this.waiting++;
    const came = performance.now();
    const turn = () => {
      if (performance.now() - came < this.mostMs) return look();
      throw new StoreUnavailableError('others were looked up for too long');
    };
    const made = this.last.then(turn).finally(() => this.waiting--);
    this.last = made.catch(() => {});
    return withStoreTimeout(this.mostMs, made);
  }
}
