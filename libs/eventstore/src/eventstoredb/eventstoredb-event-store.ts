import { randomUUID } from 'node:crypto';
import {
  BACKWARDS,
  type Credentials,
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
import { parseEventStoreDbAddress } from './address.ts';
import { ClientCallQueue } from './calls.ts';
import { assertAccess, connect, retryAbandonedAppend, toStoreError } from './connection.ts';
import { toEventData, toStoredEvents } from './events.ts';
import { readLog } from './log-pages.ts';
import { PollInterval } from './poll-interval.ts';

/** Maximum number of events per read of a stream. */
const STREAM_PAGE_SIZE = 2_000;
/** A page of the log with at least this number of entries is full. */
const LOG_PAGE_SIZE = 4_000;
/** Entries per call when the log is searched backwards for the last event of this installation. */
const END_PAGE_SIZE = 100;
/** Slightly below the server's default limit for one append, 1 MiB (`MaxAppendSize`). */
const MAX_APPEND_BYTES = 1_000_000;

export interface EventStoreDbOptions {
  /** `esdb://…` or `esdb+discover://…`, with the credentials and TLS options of all EventStoreDB clients. */
  readonly connectionString: string;
  /**
   * Prefixes of this installation's stream names. `readAll` and `subscribe` omit other streams, such as those of the
   * server itself.
   */
  readonly streamPrefixes: readonly string[];
  /** Reports a failure that is retried. */
  readonly onProblem?: (problem: string, error: unknown) => void;
}

/**
 * The event store in EventStoreDB 23.10 or newer. Only the leader of a cluster serves appends and reads of a stream, so
 * that no decision is based on the outdated data of another node. The user needs the right to read `$all`.
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
  private credentials: Credentials | undefined;
  private readonly closeController = new AbortController();

  constructor({ connectionString, streamPrefixes, onProblem = () => {} }: EventStoreDbOptions) {
    if (streamPrefixes.length === 0) throw new RangeError('streamPrefixes must not be empty');
    this.client = connect(connectionString, () => this.credentials);
    this.calls = new ClientCallQueue(this.client);
    this.streamPrefixes = streamPrefixes;
    this.onProblem = onProblem;
  }

  /** From now on, calls have the credentials of another address of the same server. Its other parts are not used. */
  replaceCredentials(connectionString: string): void {
    const address = parseEventStoreDbAddress(connectionString);
    this.credentials = typeof address === 'string' ? undefined : address.credentials;
  }

  /**
   * Checks that the server responds and that the user has all required rights. Stores nothing.
   * @throws EventStoreAccessError if the user is unknown or lacks a right, or the certificate is not accepted;
   *   StoreUnavailableError if the server does not respond in time
   */
  async check(): Promise<void> {
    const stream = `${this.streamPrefixes[0]}start`; // the stream need not exist
    const appendOptions = { expectedRevision: BigInt(Number.MAX_SAFE_INTEGER), requiresLeader: true } as const;
    const probe = toEventData({ id: randomUUID(), type: 'Probe', data: {}, metadata: {} });
    await assertAccess(`read streams such as ${stream}`, () => this.readHead(stream));
    await assertAccess('read $all: give it one of the readRoles ("$r") in the ACL of $all', () =>
      withCallerTimeout(this.execute(() => toStoredEvents(this.client.readAll({ maxCount: 1 })))),
    );
    await assertAccess(`append to streams such as ${stream}`, () =>
      this.client.appendToStream(stream, [probe], appendOptions).catch((error) => {
        if (!(error instanceof WrongExpectedVersionError)) throw toStoreError('the event store did not respond', error);
      }),
    );
  }

  async append(stream: string, expected: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'> {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    assertKnownCategory(stream, this.streamPrefixes);
    serializeEvents(stream, events, MAX_APPEND_BYTES); // checks them: an error inside the client would not be caught
    const data = events.map(toEventData);
    const options = {
      expectedRevision: expected === NO_STREAM ? NO_STREAM_YET : BigInt(expected),
      requiresLeader: true,
    } as const;
    try {
      const { success, position } = await this.calls.run(() =>
        retryAbandonedAppend(() => this.client.appendToStream(stream, data, options)),
      );
      if (!success) return 'stale'; // instead of an error, if the connection string sets throwOnAppendFailure=false
      if (!position) throw new Error('the server did not return the position of an append');
      this.pollNow(); // for subscribers of this process, such as workflows that wait for their own events
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

  /** Searches backwards, because the last entries may be events of the server or of other applications. */
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
   * All subscribers of a process share one reader that polls for pages. A live subscription is not used: the server
   * buffers only 32 of its messages, including progress messages, and then ends it ("Consumer too slow").
   */
  async *subscribe(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    yield* this.log.subscribe(after, AbortSignal.any([signal, this.closeController.signal]));
  }

  pollNow(): void {
    this.pollInterval.pollNow();
  }

  /** Ends all subscriptions and calls. The connection stays open until the process ends or the server closes it. */
  async close(): Promise<void> {
    this.closeController.abort();
    await this.client.dispose();
  }

  /** Reads events of a stream from a revision on; with `END`, backwards from its last event. */
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
   * Reads a page of the log after a position. The server starts with the entry at that position, which is dropped. The
   * client cannot filter such a read on the server, so events of other streams are dropped here.
   */
  private async readLogPage(after: bigint): Promise<LogPage> {
    const isOwnStream = (stream: string) => isKnownCategory(stream, this.streamPrefixes);
    const read = await this.execute(() => readLog(this.client, after, LOG_PAGE_SIZE + 1, isOwnStream));
    const entries = read.filter(({ position }) => position > after);
    const events = entries.flatMap(({ event }) => event ?? []);
    return { events, position: entries.at(-1)?.position ?? after, isFull: entries.length >= LOG_PAGE_SIZE };
  }

  /**
   * Makes a call, and retries it once if its connection may be lost: the client notices this only when a call fails,
   * and then reconnects.
   * @throws StoreUnavailableError, also if this store was closed during the call: the client then ends a read as if it
   *   were complete; a permanent rejection of the server, see `toStoreError`
   */
  private async execute<Result>(call: () => Promise<Result>, canRetry = true): Promise<Result> {
    try {
      const result = await this.calls.run(call);
      if (this.closeController.signal.aborted) throw new StoreUnavailableError('the event store was closed');
      return result;
    } catch (error) {
      const reason = toStoreError('the event store did not respond', error);
      const isFinal = error instanceof StoreUnavailableError || !(reason instanceof StoreUnavailableError);
      if (!canRetry || isFinal || this.closeController.signal.aborted) throw reason;
      this.onProblem('a read from the event store failed; retrying', error);
      return this.execute(call, false);
    }
  }
}
