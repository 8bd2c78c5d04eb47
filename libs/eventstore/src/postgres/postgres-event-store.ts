import type pg from 'pg';
import {
  type EventBatch,
  type EventStore,
  type NewEvent,
  START_POSITION,
  type StoredEvent,
  StoreUnavailableError,
  type StreamHead,
} from '#kernel';
import { Listener, openPool, toNotifyQuery } from '#postgres';
import { withCallerTimeout } from '../caller-timeout.ts';
import { WRITE_CONTRACT } from '../contract.ts';
import { assertKnownCategory } from '../known-categories.ts';
import { type LogPage, readPagesAfter } from '../pages.ts';
import { SharedLogReader } from '../shared-log-reader.ts';
import { AppendBatcher, CHECK_APPEND, MAX_APPEND_BYTES } from './append-batcher.ts';
import { LogTail } from './log-tail.ts';

const CHANNEL = 'countinghouse_events';
/** Maximum number of events per read of a stream. */
const STREAM_PAGE_SIZE = 2_000;
/** Maximum number of events per page of the log. */
const LOG_PAGE_SIZE = 4_000;
/** Minimum interval between notifications to other processes. */
const NOTIFY_INTERVAL_MS = 10;
/** After this time without a response the outcome of a query is unknown. */
const QUERY_TIMEOUT_MS = 10_000;

const COLUMNS = `position, stream, revision, id, type, data, metadata,
  to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const TEXT_TYPES = { getTypeParser: () => (value: string) => value };

export interface PostgresEventStoreOptions {
  readonly connectionString: string;
  /** Prefixes of the stream names that may be appended to. */
  readonly streamPrefixes?: readonly string[];
  /** The contract that appends name; by default that of this program. */
  readonly contract?: number;
  /** Reports a background failure that fails no call: it is retried, or subscribers notice new events later. */
  readonly onProblem?: (problem: string, error: unknown) => void;
}

/** The event store in PostgreSQL. `eventStoreMigrations` creates its tables. Safe with any number of processes. */
export class PostgresEventStore implements EventStore {
  readonly maxAppendBytes = MAX_APPEND_BYTES;
  private readonly pool: pg.Pool;
  private readonly batcher: AppendBatcher;
  private readonly tail: LogTail;
  private readonly log = new SharedLogReader({
    readPage: (after) => this.readLogPage(after, this.tail.position),
    waitForEvents: (after, signal) => this.tail.waitForEventsAfter(after, signal),
  });
  private readonly onProblem: (problem: string, error: unknown) => void;
  private readonly streamPrefixes: readonly string[];
  private readonly listener: Listener;
  private notifiedAt = 0;
  private notifyTimer: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor({
    connectionString,
    streamPrefixes = [''],
    contract = WRITE_CONTRACT,
    onProblem = () => {},
  }: PostgresEventStoreOptions) {
    this.streamPrefixes = streamPrefixes;
    this.onProblem = onProblem;
    this.pool = openPool({
      connectionString,
      name: 'events',
      max: 8,
      queryTimeoutMs: QUERY_TIMEOUT_MS,
      connectTimeoutMs: QUERY_TIMEOUT_MS,
      options: '-c synchronous_commit=on -c plan_cache_mode=force_generic_plan',
      onIdleError: (error) => this.onProblem('an idle connection of the event store was lost', error),
    });
    this.tail = new LogTail(this.pool, (problem, error) => this.onProblem(problem, error));
    this.batcher = new AppendBatcher(this.pool, contract, () => this.scheduleNotification());
    // Subscriptions also poll, so a lost listener only delays them.
    const onNotification = () => this.tail.wake();
    this.listener = new Listener({ connectionString, channel: CHANNEL, onNotification, onProblem });
  }

  async check(): Promise<void> {
    await this.readHead('start'); // the stream need not exist
  }

  async checkAppendRight(): Promise<void> {
    await this.query({ name: 'append right', text: CHECK_APPEND });
  }

  /** Not an async function, because that would add overhead to every append. */
  append(stream: string, expected: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'> {
    try {
      if (events.length === 0) throw new RangeError('an append needs at least one event');
      assertKnownCategory(stream, this.streamPrefixes);
      if (/[\n\\]/.test(stream)) throw new RangeError(`invalid stream name: ${JSON.stringify(stream)}`);
      return this.batcher.append(stream, expected, events);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async *read(stream: string, after: number): AsyncGenerator<readonly StoredEvent[]> {
    const text = `select ${COLUMNS} from es.events where stream = $1 and revision > $2 order by revision limit ${STREAM_PAGE_SIZE}`;
    for (let from = after; ; ) {
      const events = await withCallerTimeout(this.queryEvents({ name: 'read', text, values: [stream, from] }));
      if (events.length > 0) yield events;
      if (events.length < STREAM_PAGE_SIZE) return;
      from = (events.at(-1) as StoredEvent).revision;
    }
  }

  async readHead(stream: string): Promise<StreamHead | undefined> {
    const text = 'select revision, position from es.events where stream = $1 order by revision desc limit 1';
    const head = this.query<{ revision: string; position: string }>({ name: 'head', text, values: [stream] });
    const { rows } = await withCallerTimeout(head);
    return rows[0] && { revision: Number(rows[0].revision), position: BigInt(rows[0].position) };
  }

  async readLastPosition(): Promise<bigint> {
    const text = 'select max(position) as position from es.events';
    const { rows } = await withCallerTimeout(this.query<{ position: string | null }>({ name: 'end', text }));
    return BigInt(rows[0]?.position ?? START_POSITION);
  }

  async *readAll(after: bigint): AsyncGenerator<EventBatch> {
    const end = await this.tail.readEndPosition().catch(throwUnavailable);
    if (end > after) yield* readPagesAfter(after, (position) => this.readLogPage(position, end));
  }

  async *subscribe(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    await this.listener.open();
    yield* this.log.subscribe(after, signal);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.notifyTimer);
    this.tail.stop();
    await this.listener.close();
    await this.pool.end();
  }

  /** Reads a page of the log after position `after`, up to position `end`. */
  private async readLogPage(after: bigint, end: bigint): Promise<LogPage> {
    const text = `select ${COLUMNS} from es.events where position > $1 and position <= $2 order by position limit ${LOG_PAGE_SIZE}`;
    const events = await this.queryEvents({ name: 'log', text, values: [after, end] });
    const full = events.length === LOG_PAGE_SIZE;
    return { events, position: full ? (events.at(-1) as StoredEvent).position : end, isFull: full };
  }

  private async queryEvents(query: pg.QueryConfig): Promise<StoredEvent[]> {
    const { rows } = await this.query<string[]>({ ...query, rowMode: 'array', types: TEXT_TYPES } as pg.QueryConfig);
    return rows.map(([position, stream, revision, id, type, data, metadata, recordedAt]) => ({
      id: id as string,
      stream: stream as string,
      revision: Number(revision),
      position: BigInt(position as string),
      recordedAt: recordedAt as string,
      type: type as string,
      data: JSON.parse(data as string),
      metadata: JSON.parse(metadata as string),
    }));
  }

  private query<Row extends pg.QueryResultRow | string[]>(config: pg.QueryConfig): Promise<{ rows: Row[] }> {
    return this.pool.query(config).catch(throwUnavailable) as Promise<{ rows: Row[] }>;
  }

  /** Wakes the subscribers of this process now, and those of other processes soon, without delaying the append. */
  private scheduleNotification(): void {
    this.tail.wake();
    if (this.notifyTimer || this.isClosed) return;
    const wait = Math.max(0, this.notifiedAt + NOTIFY_INTERVAL_MS - performance.now());
    this.notifyTimer = setTimeout(() => {
      this.notifyTimer = undefined;
      this.notifiedAt = performance.now();
      this.pool.query(toNotifyQuery(CHANNEL)).catch((error) => this.onProblem('notification failed', error));
    }, wait);
  }
}

function throwUnavailable(error: unknown): never {
  throw new StoreUnavailableError('the event store did not respond', { cause: error });
}
