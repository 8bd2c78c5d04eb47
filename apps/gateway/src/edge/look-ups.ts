import { type AbuseLimits, TooManyRequests } from '#application';
import { networkOf } from './addresses.ts';
import { Unauthorized } from './errors.ts';

/** Look-ups that wait for their turn. */
const MOST_WAITING = 100;
const NEXT_TRY_SECONDS = 1;

/**
 * Look-ups of credentials. Wrong ones are counted by the address that they come from. One that has shown too many still has
 * good ones found, since others may share it: but those that are not known here wait for their turn, one at a time of all
 * such addresses together, and so a flood has one connection to the database and leaves the others to everybody else.
 */
export class LookUps {
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(private readonly limits: AbuseLimits) {}

  /**
   * @param known the credential was good here before
   * @throws what the look-up throws; TooManyRequests where that is one wrong credential too many, or too many wait
   */
  async make<T>(ip: string, known: boolean, look: () => Promise<T>): Promise<T> {
    const address = networkOf(ip);
    try {
      const waits = !known && this.limits.isOver('wrong credentials of an address', address);
      return await (waits ? this.inTurn(look) : look());
    } catch (error) {
      if (error instanceof Unauthorized) await this.limits.count('wrong credentials of an address', address);
      throw error;
    }
  }

  private inTurn<T>(look: () => Promise<T>): Promise<T> {
    if (this.waiting >= MOST_WAITING)
      throw new TooManyRequests('Too many wrong credentials come from your address', NEXT_TRY_SECONDS);
    this.waiting++;
    const made = this.last.then(look).finally(() => this.waiting--);
    this.last = made.catch(() => {});
    return made;
  }
}
