import pg from 'pg';
import { type NewEvent, StoreUnavailableError, type StreamHead } from '#kernel';
import { type SerializedEvent, serializeEvents } from '../serialize-events.ts';

/** Maximum number of concurrent batches: one is executed while the other is being made durable. */
const MAX_BATCHES_IN_FLIGHT = 2;
const MAX_EVENTS_IN_BATCH = 1_000;
/** Limit of one append and of a batch. The database processes this much well within the query timeout. */
export const MAX_APPEND_BYTES = 4 * 1024 * 1024;

/**
 * SQLSTATEs after which the connection is used again: what `isRejection` describes, a missing right, and ES426, which
 * `es.append_events` raises if the database does not accept the contract of this program.
 */
const INTACT_SQLSTATE = /^(22|23|42|ES426)/;

/** Is rejected like an append if the right to execute the function is missing. Executes nothing. */
export const CHECK_APPEND = "explain select from es.append_events(0, '', '{}', '{}', '{}', '', '', '')";

const APPEND = { name: 'append', text: 'select * from es.append_events($1, $2, $3, $4, $5, $6, $7, $8)' };

/** The results of `es.append_events`, in the order of the appends. */
interface AppendResults {
  readonly appended: readonly boolean[];
  readonly revisions: readonly (string | null)[];
  readonly positions: readonly (string | null)[];
}

interface PendingAppend {
  readonly stream: string;
  readonly expected: number;
  readonly rows: readonly SerializedEvent[];
  readonly bytes: number;
  resolve(result: StreamHead | 'stale'): void;
  reject(error: unknown): void;
}

/** Sends appends that are ready together in one transaction and one round trip. */
export class AppendBatcher {
  private pendingAppends: PendingAppend[] = [];
  private inFlight = 0;
  private isScheduled = false;

  /** @param contract the contract that this program follows when it writes */
  constructor(
    private readonly pool: pg.Pool,
    private readonly contract: number,
    private readonly onAppend: () => void,
  ) {}

  /**
   * Checks the events first, so that invalid events do not fail a batch.
   * @throws TypeError if an event cannot be converted to JSON; AppendTooLargeError if the events exceed
   *   `MAX_APPEND_BYTES`. Both are thrown at once. The promise is rejected with DatabaseError if the database rejects
   *   the append, and with StoreUnavailableError for other failures
   */
  append(stream: string, expected: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'> {
    const { events: rows, bytes } = serializeEvents(stream, events, MAX_APPEND_BYTES);
    return new Promise((resolve, reject) => {
      this.pendingAppends.push({ stream, expected, rows, bytes, resolve, reject });
      if (this.isScheduled) return;
      this.isScheduled = true;
      // Runs after everything that is ready in this iteration of the event loop, so appends of other requests join.
      setImmediate(() => {
        this.isScheduled = false;
        this.dispatch();
      });
    });
  }

  private dispatch(): void {
    while (this.inFlight < MAX_BATCHES_IN_FLIGHT && this.pendingAppends.length > 0) {
      const batch = this.takeBatch();
      this.inFlight++;
      void this.send(batch).finally(() => {
        this.inFlight--;
        this.dispatch();
      });
    }
  }

  /**
   * Returns the next batch in the order of stream names, so that two processes that append to the same streams never
   * deadlock. A batch has only one append per stream, because the second one depends on the result of the first.
   */
  private takeBatch(): PendingAppend[] {
    const batch = new Map<string, PendingAppend>();
    const rest: PendingAppend[] = [];
    let [events, bytes] = [0, 0];
    for (const pendingAppend of this.pendingAppends) {
      const isSmall =
        events + pendingAppend.rows.length <= MAX_EVENTS_IN_BATCH && bytes + pendingAppend.bytes <= MAX_APPEND_BYTES;
      const fits = batch.size === 0 || isSmall;
      if (!fits || batch.has(pendingAppend.stream)) {
        rest.push(pendingAppend);
      } else {
        batch.set(pendingAppend.stream, pendingAppend);
        events += pendingAppend.rows.length;
        bytes += pendingAppend.bytes;
      }
    }
    this.pendingAppends = rest;
    return [...batch.values()].sort((a, b) => (a.stream < b.stream ? -1 : 1));
  }

  /** A stale append stores nothing and resolves as stale; it does not affect the others of its batch. */
  private async send(batch: readonly PendingAppend[]): Promise<void> {
    try {
      settle(batch, await this.query(batch));
      this.onAppend();
    } catch (error) {
      if (batch.length > 1 && isRejection(error)) {
        await Promise.all(batch.map((pendingAppend) => this.send([pendingAppend]))); // only the invalid append fails
        return;
      }
      const failure = isRejection(error) ? error : createUnavailableError(error);
      for (const pendingAppend of batch) pendingAppend.reject(failure);
    }
  }

  private async query(batch: readonly PendingAppend[]): Promise<AppendResults> {
    const client = await this.pool.connect();
    let healthy = false;
    try {
      const values = [this.contract, ...toQueryParameters(batch)];
      const { rows } = await client.query<AppendResults>({ ...APPEND, values });
      healthy = true;
      return rows[0] as AppendResults;
    } catch (error) {
      healthy = error instanceof pg.DatabaseError && INTACT_SQLSTATE.test(error.code ?? '');
      throw error;
    } finally {
      client.release(!healthy);
    }
  }
}

function toQueryParameters(batch: readonly PendingAppend[]): string[] {
  const streams: string[] = [];
  const expectedRevisions: number[] = [];
  const revisions: number[] = [];
  const ids: string[] = [];
  const types: string[] = [];
  const data: string[] = [];
  const metadata: string[] = [];
  for (const { stream, expected, rows } of batch) {
    rows.forEach((row, i) => {
      streams.push(stream);
      expectedRevisions.push(i === 0 ? expected : -1);
      revisions.push(expected + 1 + i);
      ids.push(row.id);
      types.push(row.type);
      data.push(row.data);
      metadata.push(row.metadata);
    });
  }
  const list = (values: readonly unknown[]) => `{${values.join(',')}}`;
  const text = (values: readonly string[]) => values.join('\n');
  return [text(streams), list(expectedRevisions), list(revisions), list(ids), text(types), text(data), text(metadata)];
}

function settle(batch: readonly PendingAppend[], { appended, revisions, positions }: AppendResults): void {
  for (const [i, { resolve }] of batch.entries())
    resolve(appended[i] ? { revision: Number(revisions[i]), position: BigInt(positions[i] as string) } : 'stale');
}

/**
 * Returns whether the database processed and rejected the append, so that a retry cannot help. SQLSTATE class 22 is a
 * data exception, 23 a constraint violation, and 42 a syntax error. A missing right (42501) may be granted.
 */
function isRejection(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|23|42(?!501))/.test(error.code ?? '');
}

function createUnavailableError(error: unknown): StoreUnavailableError {
  return new StoreUnavailableError('the event store did not confirm an append', { cause: error });
}
