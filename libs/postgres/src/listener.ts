import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { connectClient } from './connections.ts';

const RECONNECT_DELAY_MS = 250;
/** A server that is suspended does not confirm the end of a connection. */
const END_TIMEOUT_MS = 1_000;

/**
 * Returns a query that notifies the listeners of a channel. A transaction that notifies holds a server-wide lock until
 * it is durable. The transaction of this query need not be durable, so it commits asynchronously.
 */
export function toNotifyQuery(channel: string): string {
  return `select set_config('synchronous_commit', 'off', true), pg_notify('${channel}', '')`;
}

export interface ListenerOptions {
  readonly connectionString: string;
  readonly channel: string;
  onNotification(): void;
  /** Reports that an attempt to connect has failed. The listener retries. */
  onProblem(problem: string, error: unknown): void;
}

/**
 * Listens for notifications on its own connection, and reconnects if that connection is lost. Notifications sent in the
 * meantime are lost.
 */
export class Listener {
  private client: pg.Client | undefined;
  private opening: Promise<void> | undefined;
  private isClosed = false;

  constructor(private readonly options: ListenerOptions) {}

  /** Resolves when the listener is connected, or after a failed attempt. */
  open(): Promise<void> {
    this.opening ??= this.connect().catch((error) => {
      this.options.onProblem(`not listening on ${this.options.channel}; retrying`, error);
      this.reopen();
    });
    return this.opening;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.opening;
    const ended = this.client?.end().catch(() => {}); // already closed
    await Promise.race([ended, delay(END_TIMEOUT_MS, undefined, { ref: false })]);
  }

  private async connect(): Promise<void> {
    const { connectionString, channel, onNotification } = this.options;
    const client = await connectClient({ connectionString, name: 'listen' });
    client.on('notification', onNotification);
    try {
      await client.query(`listen ${channel}`);
    } catch (error) {
      await client.end().catch(() => {}); // already closed; `open` reports the error above
      throw error;
    }
    client.on('end', () => this.reopen()); // only now, because `open` retries after a failure above
    this.client = client;
  }

  private reopen(): void {
    if (this.isClosed) return;
    setTimeout(() => {
      this.opening = undefined;
      if (!this.isClosed) void this.open();
    }, RECONNECT_DELAY_MS).unref();
  }
}
