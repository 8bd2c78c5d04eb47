import type { NewEvent, StoredEvent } from './message.ts';

/** The revision of a stream that has no events yet. */
export const NO_STREAM = -1;

/** The position before the first fact. */
export const START_POSITION = -1n;

/** Where a stream ends. */
export interface StreamHead {
  readonly revision: number;
  readonly position: bigint;
}

/** Facts in global order. `position` is how far the reader has now seen, also where the batch is empty. */
export interface EventBatch {
  readonly events: readonly StoredEvent[];
  readonly position: bigint;
  /** Facts between those that this program cannot read, in order. Only readers that ask for them get any. */
  readonly unreadable?: readonly UnreadableEvent[];
}

/** A fact as it was stored, and why it cannot be read. */
export interface UnreadableEvent {
  readonly event: StoredEvent;
  readonly error: unknown;
}

/** How facts are read. */
export interface EventReader {
  /** The facts of one stream behind revision `after` (`NO_STREAM` for all), in batches, to its end. */
  read(stream: string, after: number): AsyncIterable<readonly StoredEvent[]>;

  /** Where a stream ends now; undefined when it does not exist. */
  readHead(stream: string): Promise<StreamHead | undefined>;

  /** The highest position that was given to a fact; `START_POSITION` when there is none. A reader may reach it a little later. */
  readLastPosition(): Promise<bigint>;

  /** All facts behind position `after`, in global order, to the end as it is now. */
  readAll(after: bigint): AsyncIterable<EventBatch>;

  /** As `readAll`, and then what is appended, until `signal` aborts. Never skips a fact that commits late. */
  subscribe(after: bigint, signal: AbortSignal): AsyncIterable<EventBatch>;
}

/** How facts are appended. Only `run` does it. */
export interface EventAppender {
  /**
   * Appends all of `events` or none, if the stream ends at `expectedRevision` (`NO_STREAM` when it must not exist yet).
   * Sending the same event ids at the same `expectedRevision` again is one append.
   * @returns the new head, or `'stale'` when the stream ends elsewhere
   * @throws StoreUnavailableError when the outcome is unknown: ask again with the same ids; AppendTooLargeError; whatever else it
   *   throws, nothing was stored, and the same append would be refused again
   */
  append(stream: string, expectedRevision: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'>;
}

/** The store of facts. Every adapter passes the same contract (`libs/testing/src/contracts/event-store.ts`). */
export interface EventStore extends EventReader, EventAppender {}

/** The store did not answer, so it is unknown whether an append happened. */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** What was appended may be there, or come yet: a store that was stopped goes on with what it was sent. */
export class UnknownOutcomeError extends StoreUnavailableError {}

/** An append has more bytes than the store takes at once. Nothing was stored. */
export class AppendTooLargeError extends Error {
  override readonly name = 'AppendTooLargeError';
}

/**
 * A folded state and the fact it was folded to. A cache: losing it loses nothing. What is decided on it is money, so it is used
 * only where it surely was kept by this installation, and goes on from the fact that it names.
 */
export interface Snapshot extends StreamHead {
  /** The id of the last fact. */
  readonly lastEventId: string;
  readonly state: unknown;
}

export interface SnapshotStore {
  /** @throws when there is one that this installation has not kept */
  load(stream: string, version: string): Promise<Snapshot | undefined>;
  save(stream: string, version: string, snapshot: Snapshot): Promise<void>;
  /** Removes one that cannot be used. */
  drop(stream: string): Promise<void>;
}

/** For streams that stay short. */
export const NO_SNAPSHOTS: SnapshotStore = { load: async () => undefined, save: async () => {}, drop: async () => {} };

/** How far a reader of facts has come, for readers that keep nothing else. */
export interface CheckpointStore {
  load(reader: string): Promise<bigint>;
  save(reader: string, position: bigint): Promise<void>;
}

/**
 * A turn at what one process at a time does. Others may have the next turn before this process knows that its own is
 * over, so the token goes along with what it writes, and the highest one that was seen decides.
 */
export interface Lease {
  /** Higher than the token of every turn before; a whole number below 2^53. */
  readonly token: number;
  /** Aborts when the turn is over. A process that was stopped may be late to see it: `isHeld` is not. */
  readonly signal: AbortSignal;
  /** Whether the turn lasts by a clock that ran on while this process was stopped. */
  isHeld(): boolean;
}

/** Another process has the turn now, so nothing was written. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/** A reader stands before a fact that it cannot take, until it can, or until somebody has said that it be skipped. */
export class BlockedByEventError extends Error {
  override readonly name = 'BlockedByEventError';

  constructor(
    readonly position: bigint,
    message: string,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

/** What the kernel may not reach for itself. */
export interface Runtime {
  generateId(): string;
  /** Waits, at most until `signal` aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** A failure that no caller waits for, such as a snapshot that could not be saved. */
  reportError(problem: string, error: unknown): void;
}
