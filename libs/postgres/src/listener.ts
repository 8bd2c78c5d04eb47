import type pg from 'pg';
import { createClient } from './connections.ts';

const RECONNECT_DELAY_MS = 250;

/**
 * A query that notifies those who listen. A transaction that notifies holds a lock of the whole server while it is made durable,
 * and this one need not be.
 */
export function toNotifyQuery(channel: string): string {
  return `select set_config('synchronous_commit', 'off', true), pg_notify('${channel}', '')`;
}

export interface ListenerOptions {
  readonly connectionString: string;
  readonly channel: string;
  onNotification(): void;
  /** It listens no more, and tries again. */
  onProblem(problem: string, error: unknown): void;
}

/** Listens for notifications on a connection of its own, which is made anew when it is lost. Those sent meanwhile are lost. */
export class Listener {
  private client: pg.Client | undefined;
  private opening: Promise<void> | undefined;
  private isClosed = false;

  constructor(private readonly options: ListenerOptions) {}

  /** Resolves when it listens, or cannot for now. */
  open(): Promise<void> {
    this.opening ??= this.connect().catch((error) => {
      this.options.onProblem(`not listening on ${this.options.channel}; trying again`, error);
      this.reopen();
    });
    return this.opening;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.opening;
    await this.client?.end().catch(() => {});
  }

  private async connect(): Promise<void> {
    const { connectionString, channel, onNotification } = this.options;
    const client = createClient({ connectionString, name: 'listen' });
    client.on('notification', onNotification);
    try {
      await client.connect();
      await client.query(`listen ${channel}`);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    client.on('end', () => this.reopen()); // only now: a failure above is reported by the caller alone
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
