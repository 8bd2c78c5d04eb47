import { setTimeout as delay } from 'node:timers/promises';
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
  type Batch,
  type EventStore,
  type Head,
  type NewEvent,
  NO_STREAM,
  type Recorded,
  START,
  StoreUnavailable,
} from '#kernel';
import { assertListed, isListed } from '../listed.ts';
import { written } from '../written.ts';
import { connect, failed, Gate } from './connection.ts';
import { recordedIn, toEventData } from './events.ts';
import { Feed, toPosition } from './feed.ts';

/** Events per call: of one stream, of all. */
const STREAM_PAGE = 2_000;
const LOG_PAGE = 4_000;
/** Entries per call on the way back to the last that is ours. */
const END_PAGE = 100;
/** Of 1 MiB, which a server takes in one append unless it is configured otherwise (`MaxAppendSize`). */
const MAX_APPEND_BYTES = 1_000_000;
/** A follower that is not behind takes a batch at most this often, so that facts gather. */
const GATHER_MS = 15;

export interface EventStoreDbOptions {
  /** `esdb://…` or `esdb+discover://…`, with credentials and TLS options as all clients of EventStoreDB take them. */
  readonly connectionString: string;
  /** How the names of our streams begin. `history` and `follow` see no others; a server has streams of its own. */
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
  private readonly gate = new Gate();
  private readonly closing = new AbortController();

  constructor({ connectionString, streamPrefixes, onProblem = () => {} }: EventStoreDbOptions) {
    if (streamPrefixes.length === 0) throw new RangeError('no stream would ever be seen');
    this.client = connect(connectionString);
    this.streamPrefixes = streamPrefixes;
    this.onProblem = onProblem;
  }

  async append(stream: string, expected: number, events: readonly NewEvent[]): Promise<Head | 'stale'> {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    assertListed(stream, this.streamPrefixes);
    written(stream, events, MAX_APPEND_BYTES); // here: what the client throws when it writes them, nothing would catch
    const data = events.map(toEventData);
    const options = {
      expectedRevision: expected === NO_STREAM ? NO_STREAM_YET : BigInt(expected),
      requiresLeader: true,
    } as const;
    try {
      const { success, position } = await this.gate.pass(() => this.client.appendToStream(stream, data, options));
      if (!success) return 'stale'; // instead of an error, where the connection string asks for it
      if (!position) throw new Error('the server did not return the position of an append');
      return { revision: expected + events.length, position: position.commit };
    } catch (error) {
      if (error instanceof WrongExpectedVersionError) return 'stale';
      throw failed('the event store did not confirm an append', error);
    }
  }

  async *read(stream: string, after: number): AsyncGenerator<readonly Recorded[]> {
    for (let from = after + 1; ; ) {
      const events = await this.page(stream, BigInt(from), STREAM_PAGE);
      if (events.length > 0) yield events;
      if (events.length < STREAM_PAGE) return;
      from += events.length;
    }
  }

  async head(stream: string): Promise<Head | undefined> {
    const [last] = await this.page(stream, END, 1);
    return last && { revision: last.revision, position: last.position };
  }

  /** Backwards, past what the server has written for itself. */
  async end(): Promise<bigint> {
    let from: Position | typeof END = END;
    for (;;) {
      const options = { direction: BACKWARDS, fromPosition: from, maxCount: END_PAGE } as const;
      const entries: readonly Recorded[] = await this.ask(() => recordedIn(this.client.readAll(options)));
      const ours = entries.find(({ stream }) => isListed(stream, this.streamPrefixes));
      const first = entries.at(-1);
      if (ours || !first || entries.length < END_PAGE) return ours?.position ?? START;
      from = { commit: first.position, prepare: first.position };
    }
  }

  /** The client cannot filter such a read on the server; what is not ours is dropped here. */
  async *history(after: bigint): AsyncGenerator<Batch> {
    let next = this.logPage(after);
    for (let position = after; ; ) {
      const entries = await next;
      const last = entries.at(-1)?.position ?? position;
      const more = entries.length >= LOG_PAGE;
      if (more) {
        next = this.logPage(last);
        next.catch(() => {}); // thrown where it is awaited
      }
      const events = entries.filter(({ stream }) => isListed(stream, this.streamPrefixes));
      if (last > position) yield { events, position: last };
      if (!more) return;
      position = last;
    }
  }

  async *follow(after: bigint, signal: AbortSignal): AsyncGenerator<Batch> {
    const until = AbortSignal.any([signal, this.closing.signal]);
    if (until.aborted) return;
    const feed = new Feed(this.client, this.streamPrefixes, after);
    try {
      for (;;) {
        const batch = await feed.next(until);
        if (!batch) return;
        const gathering = delay(GATHER_MS);
        yield batch;
        await gathering;
      }
    } finally {
      feed.close();
    }
  }

  /** Ends all followers and calls. The connection goes with the process, or when the server closes it. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.client.dispose();
  }

  /** Events of a stream from a revision on, or its last one. */
  private page(stream: string, from: bigint | typeof END, maxCount: number): Promise<Recorded[]> {
    const direction = from === END ? BACKWARDS : FORWARDS;
    const options = { fromRevision: from, direction, maxCount, requiresLeader: true } as const;
    return this.ask(() =>
      recordedIn(this.client.readStream(stream, options)).catch((error) => {
        if (error instanceof StreamNotFoundError) return [];
        throw error;
      }),
    );
  }

  /** Entries of the log behind a position. The server begins with the one at that position, which is left out. */
  private async logPage(after: bigint): Promise<Recorded[]> {
    const options = { fromPosition: toPosition(after), maxCount: LOG_PAGE + 1 };
    const entries = await this.ask(() => recordedIn(this.client.readAll(options)));
    return entries.filter(({ position }) => position > after);
  }

  /** Asks twice: the client notices a lost connection only by a call that fails, and then reconnects. */
  private async ask<Answer>(question: () => Promise<Answer>, again = true): Promise<Answer> {
    try {
      return await this.gate.pass(question);
    } catch (error) {
      const reason = failed('the event store did not answer', error);
      if (!again || !(reason instanceof StoreUnavailable)) throw reason;
      this.onProblem('a read failed and is tried once more', error);
      return this.ask(question, false);
    }
  }
}
