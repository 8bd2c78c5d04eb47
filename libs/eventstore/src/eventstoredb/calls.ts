import { type EventStoreDBClient, UnavailableError } from '@eventstore/db-client';
import { StoreUnavailableError } from '#kernel';

/**
 * Calls that are with the server at the same time. A server takes 100 on a connection unless it is configured otherwise, and
 * resets what is beyond ("Bandwidth exhausted", KurrentDB-Client-NodeJS issue 167).
 */
const CALLS_IN_FLIGHT = 64;
/** A call that has waited so long for its turn is not made any more: nobody waits for its answer. */
const TURN_WITHIN_MS = 4_000;
/**
 * A connection that is not made within this time is given up: the node may be stopped, and another one lead by now. It may also be
 * slow, so the next one has twice the time, up to ten seconds.
 */
const CONNECTED_WITHIN_MS = 2_000;
const LONGEST_CONNECTED_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 500;
/** A connection that is made, as gRPC counts the states of its channels. */
const READY = 2;

interface Channel {
  getConnectivityState(tryToConnect: boolean): number;
}

/** What is internal to the client about its connection. */
interface Inner {
  getChannel(): Promise<Channel>;
  handleError(client: { getChannel(): Channel }, error: Error): Promise<void>;
}

/**
 * The calls of a client. It limits how many run at the same time, and gives up a connection that is not made while they wait: the
 * client would wait 20 s for it, and calls without a deadline as long.
 */
export class ClientCallQueue {
  private free = CALLS_IN_FLIGHT;
  /** In the order in which they came. */
  private readonly waiting = new Set<() => void>();
  private readonly client: Inner;
  private watch: NodeJS.Timeout | undefined;
  private unready: { readonly channel: Channel; readonly since: number } | undefined;
  /** Connections in a row that were given up. */
  private givenUp = 0;

  constructor(client: EventStoreDBClient) {
    this.client = client as unknown as Inner;
  }

  /** Makes a call when it is its turn; the others wait for theirs. @throws StoreUnavailableError when that takes too long */
  async make<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    if (this.free > 0) this.free--;
    else await this.turn();
    this.watch ??= setInterval(() => this.look().catch(() => {}), LOOK_EVERY_MS).unref(); // calls say what is wrong
    try {
      return await call();
    } finally {
      const [next] = this.waiting;
      if (next) next();
      else if (++this.free === CALLS_IN_FLIGHT) this.rest();
    }
  }

  private turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        this.waiting.delete(begin);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiting.delete(begin);
        reject(new StoreUnavailableError('the event store has not answered others'));
      }, TURN_WITHIN_MS);
      this.waiting.add(begin);
    });
  }

  private rest(): void {
    clearInterval(this.watch);
    this.watch = undefined;
    this.unready = undefined;
  }

  private async look(): Promise<void> {
    const channel = await this.client.getChannel();
    if (channel.getConnectivityState(false) === READY) {
      this.unready = undefined;
      this.givenUp = 0;
      return;
    }
    if (this.unready?.channel !== channel) this.unready = { channel, since: performance.now() };
    const most = Math.min(CONNECTED_WITHIN_MS * 2 ** this.givenUp, LONGEST_CONNECTED_WITHIN_MS);
    if (performance.now() - this.unready.since < most) return;
    this.givenUp++;
    await this.client.handleError({ getChannel: () => channel }, new UnavailableError());
  }
}
