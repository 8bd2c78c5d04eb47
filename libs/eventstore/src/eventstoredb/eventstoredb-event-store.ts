import { randomUUID } from 'node:crypto';
import {
  BACKWARDS,
  END,
  type EventStoreDBClient,
  FORWARDS,
  NO_STREAM as NO_STREAM_YET,
  type Position,
  StreamNotFoundError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import {
  type EventBatch,
  type EventStore,
  type NewEvent,
  NO_STREAM,
  START_POSITION,
  type StoredEvent,
  StoreUnavailableError,
  type StreamHead,
} from '#kernel';
import { withCallerTimeout } from '../caller-timeout.ts';
import { assertKnownCategory, isKnownCategory } from '../known-categories.ts';
import { type LogPage, readPagesAfter } from '../pages.ts';
import { serializeEvents } from '../serialize-events.ts';
import { SharedLogReader } from '../shared-log-reader.ts';
import { ClientCallQueue } from './calls.ts';
import { assertAccess, connect, retryAbandonedAppend, toStoreError } from './connection.ts';
import { toEventData, toStoredEvents } from './events.ts';
import { readLog } from './log-pages.ts';
import { PollInterval } from './poll-interval.ts';

/** Events per call: of one stream, of all. */
const STREAM_PAGE_SIZE = 2_000;
const LOG_PAGE_SIZE = 4_000;
/** Entries per call on the way back to the last that is ours. */
const END_PAGE_SIZE = 100;
/** Of 1 MiB, which a server takes in one append unless it is configured otherwise (`MaxAppendSize`). */
const MAX_APPEND_BYTES = 1_000_000;

export interface EventStoreDbOptions {
  /** `esdb://…` or `esdb+discover://…`, with credentials and TLS options as all clients of EventStoreDB take them. */
  readonly connectionString: string;
  /** How the names of our streams begin. `readAll` and `subscribe` see no others; a server has streams of its own. */
  readonly streamPrefixes: readonly string[];
  /** A failure that is retried. */
  readonly onProblem?: (problem: string, error: unknown) => void;
}

/**
 * The event store in EventStoreDB 23.10 or newer. Reads and appends are answered by the leader of a cluster, so that
 * no decision depends on what another node has not received yet. A user needs the right to read `$all`.
 */
export class EventStoreDbEventStore implements EventStore {
  readonly maxAppendBytes = MAX_APPEND_BYTES;
  private readonly client: EventStoreDBClient;
  private readonly streamPrefixes: readonly string[];
  private readonly onProblem: (problem: string, error: unknown) => void;
  private readonly calls: ClientCallQueue;
  private readonly pollInterval = new PollInterval();
  private readonly log = new SharedLogReader({
    readPage: async (after) => this.pollInterval.record(await this.readLogPage(after)),
    waitForEvents: (after, signal) => this.pollInterval.waitUntilDue(after, signal),
  });
  private readonly closeController = new AbortController();

  constructor({ connectionString, streamPrefixes, onProblem = () => {} }: EventStoreDbOptions) {
    if (streamPrefixes.length === 0) throw new RangeError('no stream would ever be seen');
    this.client = connect(connectionString);
    this.calls = new ClientCallQueue(this.client);
    this.streamPrefixes = streamPrefixes;
    this.onProblem = onProblem;
  }

  /**
   * Whether the server answers, and lets its user do what this program does. Nothing is stored.
   * @throws EventStoreAccessError, StoreUnavailableError
   */
  async check(): Promise<void> {
    const stream = `${this.streamPrefixes[0]}start`; // which need not exist
    const appendOptions = { expectedRevision: BigInt(Number.MAX_SAFE_INTEGER), requiresLeader: true } as const;
    const probe = toEventData({ id: randomUUID(), type: 'Probe', data: {}, metadata: {} });
    await assertAccess(`read streams such as ${stream}`, () => this.readHead(stream));
    await assertAccess('read $all: give it one of the readRoles ("$r") in the metadata of $all', () =>
      withCallerTimeout(this.execute(() => toStoredEvents(this.client.readAll({ maxCount: 1 })))),
    );
    await assertAccess(`append to streams such as ${stream}`, () =>
      this.client.appendToStream(stream, [probe], appendOptions).catch((error) => {
        if (!(error instanceof WrongExpectedVersionError)) throw toStoreError('the event store did not answer', error);
      }),
    );
  }

  async append(stream: string, expected: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'> {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    assertKnownCategory(stream, this.streamPrefixes);
    serializeEvents(stream, events, MAX_APPEND_BYTES); // here: what the client throws when it writes them, nothing would catch
    const data = events.map(toEventData);
    const options = {
      expectedRevision: expected === NO_STREAM ? NO_STREAM_YET : BigInt(expected),
      requiresLeader: true,
    } as const;
    try {
      const { success, position } = await this.calls.run(() =>
        retryAbandonedAppend(() => this.client.appendToStream(stream, data, options)),
      );
      if (!success) return 'stale'; // instead of an error, where the connection string asks for it
      if (!position) throw new Error('the server did not return the position of an append');
      this.pollNow(); // followers of this process, as those of the sagas, which wait for their own facts
      return { revision: expected + events.length, position: position.commit };
    } catch (error) {
      if (error instanceof WrongExpectedVersionError) return 'stale';
      throw toStoreError('the event store did not confirm an append', error);
    }
  }

  async *read(stream: string, after: number): AsyncGenerator<readonly StoredEvent[]> {
    for (let from = after + 1; ; ) {
      const events = await this.readStreamPage(stream, BigInt(from), STREAM_PAGE_SIZE);
      if (events.length > 0) yield events;
      if (events.length < STREAM_PAGE_SIZE) return;
      from += events.length;
    }
  }

  async readHead(stream: string): Promise<StreamHead | undefined> {
    const [last] = await this.readStreamPage(stream, END, 1);
    return last && { revision: last.revision, position: last.position };
  }

  /** Backwards, past what the server has written for itself. */
  async readLastPosition(): Promise<bigint> {
    let from: Position | typeof END = END;
    for (;;) {
      const options = {
        direction: BACKWARDS,
        fromPosition: from,
        maxCount: END_PAGE_SIZE,
        requiresLeader: true,
      } as const;
      const entries: readonly StoredEvent[] = await withCallerTimeout(
        this.execute(() => toStoredEvents(this.client.readAll(options))),
      );
      const ownEvent = entries.find(({ stream }) => isKnownCategory(stream, this.streamPrefixes));
      const first = entries.at(-1);
      if (ownEvent || !first || entries.length < END_PAGE_SIZE) return ownEvent?.position ?? START_POSITION;
      from = { commit: first.position, prepare: first.position };
    }
  }

  readAll(after: bigint): AsyncGenerator<EventBatch> {
    return readPagesAfter(after, (position) => this.readLogPage(position));
  }

  /**
   * All followers of a process share one reader, which asks for pages. A subscription for each would be dropped: a server
   * keeps 32 messages for one that is live, those about its search included, and then ends it ("Consumer too slow").
   */
  async *subscribe(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    yield* this.log.subscribe(after, AbortSignal.any([signal, this.closeController.signal]));
  }

  /** Somebody waits to see what was appended: followers of this process look for it now. */
  pollNow(): void {
    this.pollInterval.pollNow();
  }

  /** Ends all followers and calls. The connection goes with the process, or when the server closes it. */
  async close(): Promise<void> {
    this.closeController.abort();
    await this.client.dispose();
  }

  /** Events of a stream from a revision on, or its last one. */
  private readStreamPage(stream: string, from: bigint | typeof END, maxCount: number): Promise<StoredEvent[]> {
    const direction = from === END ? BACKWARDS : FORWARDS;
    const options = { fromRevision: from, direction, maxCount, requiresLeader: true } as const;
    const read = () =>
      toStoredEvents(this.client.readStream(stream, options)).catch((error) => {
        if (error instanceof StreamNotFoundError) return [];
        throw error;
      });
    return withCallerTimeout(this.execute(read));
  }

  /**
   * What is behind a position. The server begins with the entry at that position, which is left out; the client cannot filter
   * such a read on the server, so what is not ours is dropped here.
   */
  private async readLogPage(after: bigint): Promise<LogPage> {
    const isOwnStream = (stream: string) => isKnownCategory(stream, this.streamPrefixes);
    const read = await this.execute(() => readLog(this.client, after, LOG_PAGE_SIZE + 1, isOwnStream));
    const entries = read.filter(({ position }) => position > after);
    const events = entries.flatMap(({ event }) => event ?? []);
    return { events, position: entries.at(-1)?.position ?? after, isFull: entries.length >= LOG_PAGE_SIZE };
  }

  /**
   * Asks twice: the client notices a lost connection only by a call that fails, and then reconnects.
   * @throws StoreUnavailableError also where this store was closed meanwhile: the client ends its reads as if they were complete
   */
  private async execute<Result>(call: () => Promise<Result>, canRetry = true): Promise<Result> {
    try {
      const result = await this.calls.run(call);
      if (this.closeController.signal.aborted) throw new StoreUnavailableError('the event store was closed');
      return result;
    } catch (error) {
      const reason = toStoreError('the event store did not answer', error);
      const isFinal = error instanceof StoreUnavailableError || !(reason instanceof StoreUnavailableError);
      if (!canRetry || isFinal || this.closeController.signal.aborted) throw reason;
      this.onProblem('a read failed and is tried once more', error);
      return this.execute(call, false);
    }
  }
}
