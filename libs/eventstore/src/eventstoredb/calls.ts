import { type EventStoreDBClient, UnavailableError } from '@eventstore/db-client';
import { StoreUnavailableError } from '#kernel';

/**
 * Calls that are with the server at the same time. A server takes 100 on a connection unless it is configured otherwise, and
 * resets what is beyond ("Bandwidth exhausted", KurrentDB-Client-NodeJS issue 167).
 */
const MAX_CALLS_IN_FLIGHT = 64;
/** A call that has waited so long for its turn is not made any more: nobody waits for its answer. */
const QUEUE_TIMEOUT_MS = 4_000;
/**
 * A connection that is not made within this time is given up: the node may be stopped, and another one lead by now. It may also be
 * slow, so the next one has twice the time, up to ten seconds.
 */
const CONNECT_TIMEOUT_MS = 2_000;
const MAX_CONNECT_TIMEOUT_MS = 10_000;
const POLL_INTERVAL_MS = 500;
/** A connection that is made, as gRPC counts the states of its channels. */
const READY = 2;

interface Channel {
  getConnectivityState(tryToConnect: boolean): number;
}

/** What is internal to the client about its connection. */
interface ClientInternals {
  getChannel(): Promise<Channel>;
  handleError(client: { getChannel(): Channel }, error: Error): Promise<void>;
}

/**
 * The calls of a client. It limits how many run at the same time, and gives up a connection that is not made while they wait: the
 * client would wait 20 s for it, and calls without a deadline as long.
 */
export class ClientCallQueue {
  private freeSlots = MAX_CALLS_IN_FLIGHT;
  /** In the order in which they came. */
  private readonly waiters = new Set<() => void>();
  private readonly client: ClientInternals;
  private pollTimer: NodeJS.Timeout | undefined;
  private unready: { readonly channel: Channel; readonly since: number } | undefined;
  /** Connections in a row that were given up. */
  private failedConnects = 0;

  constructor(client: EventStoreDBClient) {
    this.client = client as unknown as ClientInternals;
  }

  /** Makes a call when it is its turn; the others wait for theirs. @throws StoreUnavailableError when that takes too long */
  async run<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.freeSlots > 0) this.freeSlots--;
    else await this.waitForSlot();
    this.pollTimer ??= setInterval(() => this.checkConnection().catch(() => {}), POLL_INTERVAL_MS).unref(); // calls say what is wrong
    try {
      return await call();
    } finally {
      const [next] = this.waiters;
      if (next) next();
      else if (++this.freeSlots === MAX_CALLS_IN_FLIGHT) this.stopPolling();
    }
  }

  private waitForSlot(): Promise<void> {
    return new Promise((resolve, reject) => {
      const onSlotFree = () => {
        this.waiters.delete(onSlotFree);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiters.delete(onSlotFree);
        reject(new StoreUnavailableError('the event store has not answered others'));
      }, QUEUE_TIMEOUT_MS);
      this.waiters.add(onSlotFree);
    });
  }

  private stopPolling(): void {
    clearInterval(this.pollTimer);
    this.pollTimer = undefined;
    this.unready = undefined;
  }

  private async checkConnection(): Promise<void> {
    const channel = await this.client.getChannel();
    if (channel.getConnectivityState(false) === READY) {
      this.unready = undefined;
      this.failedConnects = 0;
      return;
    }
    if (this.unready?.channel !== channel) this.unready = { channel, since: performance.now() };
    const timeoutMs = Math.min(CONNECT_TIMEOUT_MS * 2 ** this.failedConnects, MAX_CONNECT_TIMEOUT_MS);
    if (performance.now() - this.unready.since < timeoutMs) return;
    this.failedConnects++;
    await this.client.handleError({ getChannel: () => channel }, new UnavailableError());
  }
}
