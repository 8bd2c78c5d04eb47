import { type AbuseLimits, TooManyRequests } from '#application';
import { networkOf } from './addresses.ts';
import { BooksBehind, BooksIncomplete, Unauthorized } from './errors.ts';

/** Look-ups that wait for their turn. */
const MOST_WAITING = 100;
const NEXT_TRY_SECONDS = 1;

/**
 * Look-ups of credentials. Wrong ones are counted by the address that they come from. One that has shown too many still has
 * good ones found, since others may share it: but those that are not known here wait for their turn, one at a time of all
 * such addresses together, and so a flood has one connection to the database and leaves the others to everybody else. Whose
 * turn it is keeps nobody behind it waiting for a read model that is late.
 */
export class LookUps {
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(private readonly limits: AbuseLimits) {}

  /**
   * @param known the credential was good here before
   * @param look is told whether it may wait for the read models
   * @throws what the look-up throws; TooManyRequests where that is one wrong credential too many, or too many wait
   */
  async make<T>(ip: string, known: boolean, look: (patient: boolean) => Promise<T>): Promise<T> {
    const address = networkOf(ip);
    try {
      const waits = !known && this.limits.isOver('wrong credentials of an address', address);
      return await (waits ? this.inTurn(() => look(false)) : look(true));
    } catch (error) {
      const count = () => this.limits.count('wrong credentials of an address', address);
      if (error instanceof Unauthorized) await count();
      // It may be good, so it is not said that it is one too many; but whoever tries many has them wait for their turn.
      if (error instanceof BooksBehind || error instanceof BooksIncomplete) await count().catch(() => {});
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
