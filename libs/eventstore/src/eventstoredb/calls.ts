import { type EventStoreDBClient, UnavailableError } from '@eventstore/db-client';
import { StoreUnavailableError } from '#kernel';

/**
 * Maximum number of concurrent calls. By default a server accepts 100 on a connection, and resets further ones
 * ("Bandwidth exhausted", https://github.com/kurrent-io/KurrentDB-Client-NodeJS/issues/167).
 */
const MAX_CALLS_IN_FLIGHT = 64;
/** Maximum time in the queue. A call that has waited this long is not made: most callers have stopped waiting. */
const QUEUE_TIMEOUT_MS = 4_000;
/**
 * A connection that is not established within this time is abandoned: the node may be down, and another one may be the
 * leader now.
 */
const CONNECT_TIMEOUT_MS = 2_000;
/** The node may also be slow, so each further attempt has twice the time of the previous one, up to this maximum. */
const MAX_CONNECT_TIMEOUT_MS = 10_000;
const POLL_INTERVAL_MS = 500;
/** `connectivityState.READY` of @grpc/grpc-js. */
const READY = 2;

interface Channel {
  getConnectivityState(tryToConnect: boolean): number;
}

/** Internal methods of the client for its connection. */
interface ClientInternals {
  getChannel(): Promise<Channel>;
  handleError(client: { getChannel(): Channel }, error: Error): Promise<void>;
}

/**
 * Queues the calls of a client, limits the number of concurrent calls, and abandons a connection that is not
 * established in time. The client itself would wait 20 s for the connection, and so would calls without a deadline.
 */
export class ClientCallQueue {
  private freeSlots = MAX_CALLS_IN_FLIGHT;
  /** In order of arrival. */
  private readonly waiters = new Set<() => void>();
  private readonly client: ClientInternals;
  private pollTimer: NodeJS.Timeout | undefined;
  private unready: { readonly channel: Channel; readonly since: number } | undefined;
  /** Number of connections in a row that were abandoned. */
  private failedConnects = 0;

  constructor(client: EventStoreDBClient) {
    this.client = client as unknown as ClientInternals;
  }

  /**
   * Makes a call as soon as a slot is free.
   * @throws StoreUnavailableError if the call waits too long in the queue; any error of the call
   */
  async run<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.freeSlots > 0) this.freeSlots--;
    else await this.waitForSlot();
    // Errors are ignored here, because the calls report them.
    this.pollTimer ??= setInterval(() => this.checkConnection().catch(() => {}), POLL_INTERVAL_MS).unref();
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
        reject(new StoreUnavailableError('timed out in the queue of calls to the event store'));
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
