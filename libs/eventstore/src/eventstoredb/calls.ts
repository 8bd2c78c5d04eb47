import { type EventStoreDBClient, UnavailableError } from '@eventstore/db-client';

/**
 * Calls that are with the server at the same time. A server takes 100 on a connection unless it is configured otherwise, and
 * resets what is beyond ("Bandwidth exhausted", KurrentDB-Client-NodeJS issue 167).
 */
const CALLS_IN_FLIGHT = 64;
/** A connection that is not made within this time is given up: the node may be stopped, and another one lead by now. */
const CONNECTED_WITHIN_MS = 2_000;
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
export class Calls {
  private free = CALLS_IN_FLIGHT;
  private readonly waiting: (() => void)[] = [];
  private readonly client: Inner;
  private watch: NodeJS.Timeout | undefined;
  private unready: { readonly channel: Channel; readonly since: number } | undefined;

  constructor(client: EventStoreDBClient) {
    this.client = client as unknown as Inner;
  }

  /** Makes a call when it is its turn; the others wait for theirs. */
  async make<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.watch ??= setInterval(() => this.look().catch(() => {}), LOOK_EVERY_MS).unref(); // calls say what is wrong
    try {
      return await call();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else if (++this.free === CALLS_IN_FLIGHT) this.rest();
    }
  }

  private rest(): void {
    clearInterval(this.watch);
    this.watch = undefined;
    this.unready = undefined;
  }

  private async look(): Promise<void> {
    const channel = await this.client.getChannel();
    if (channel.getConnectivityState(false) === READY) this.unready = undefined;
    else if (this.unready?.channel !== channel) this.unready = { channel, since: performance.now() };
    else if (performance.now() - this.unready.since >= CONNECTED_WITHIN_MS)
      await this.client.handleError({ getChannel: () => channel }, new UnavailableError());
  }
}
