import type { NewEvent, StoredEvent } from './message.ts';

/** The revision of a stream that has no events yet. */
export const NO_STREAM = -1;

/** The position before the first event. */
export const START_POSITION = -1n;

/** Revision and position of the last event of a stream. */
export interface StreamHead {
  readonly revision: number;
  readonly position: bigint;
}

/** Events in global order. No event up to `position` will follow, even if the batch is empty. */
export interface EventBatch {
  readonly events: readonly StoredEvent[];
  readonly position: bigint;
  /** Events of the same range that this build cannot read, in order. Only lenient readers return them. */
  readonly unreadable?: readonly UnreadableEvent[];
}

/** An event as stored, and the reason why it cannot be read. */
export interface UnreadableEvent {
  readonly event: StoredEvent;
  readonly error: unknown;
}

/** Reads one stream, reads all events up to the current end, or subscribes to all events. */
export interface EventReader {
  /** Returns the events of a stream after revision `after` (`NO_STREAM` for all) up to its end, in batches. */
  read(stream: string, after: number): AsyncIterable<readonly StoredEvent[]>;

  /** Returns the current head of a stream; undefined if the stream does not exist. */
  readHead(stream: string): Promise<StreamHead | undefined>;

  /**
   * Returns the highest position of any event; `START_POSITION` if there are no events. Readers may reach that position
   * slightly later.
   */
  readLastPosition(): Promise<bigint>;

  /** Returns all events after position `after`, in global order, up to the current end. */
  readAll(after: bigint): AsyncIterable<EventBatch>;

  /**
   * Returns the same events as `readAll`, then those that are appended later, until `signal` aborts. An event whose
   * transaction commits after that of an event with a higher position is not missed.
   */
  subscribe(after: bigint, signal: AbortSignal): AsyncIterable<EventBatch>;
}

/** Appends events if the stream is at the expected revision. Apart from tools, only `CommandRunner` uses it. */
export interface EventAppender {
  /**
   * If the stream ends at `expectedRevision` (`NO_STREAM`: it must not exist yet), appends all of `events` or none.
   * Idempotent: repeating the same event ids at the same `expectedRevision` is one append.
   * @returns the new head; `'stale'` if the stream ends at another revision
   * @throws StoreUnavailableError if the outcome is unknown: retry with the same ids; AppendTooLargeError if the events
   *   are too large for one append. After any other error nothing was stored, and the same append would be rejected
   *   again.
   */
  append(stream: string, expectedRevision: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'>;
}

/** Every adapter passes the same contract tests (`libs/testing/src/contracts/event-store.ts`). */
export interface EventStore extends EventReader, EventAppender {}

/**
 * The store does not respond, or a stream is too busy. If `append` throws it, the events may be stored. If a command
 * throws it, nothing was stored, unless it is an UnknownOutcomeError.
 */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** The events may be stored, or may still be stored later: a suspended store resumes the requests that it received. */
export class UnknownOutcomeError extends StoreUnavailableError {}

/** An append has more bytes than the store accepts at once. Nothing was stored. */
export class AppendTooLargeError extends Error {
  override readonly name = 'AppendTooLargeError';
}

/**
 * A folded state, and the last event that it includes. A snapshot is a cache: losing it loses no data. Decisions about
 * money are based on it. So a snapshot is used only if this installation wrote it and its stream still has that event.
 */
export interface Snapshot extends StreamHead {
  /** Id of the last event. */
  readonly lastEventId: string;
  readonly state: unknown;
}

export interface SnapshotStore {
  /** @throws Error if the stored snapshot was not written by this installation */
  load(stream: string, version: string): Promise<Snapshot | undefined>;
  save(stream: string, version: string, snapshot: Snapshot): Promise<void>;
  /** Removes a snapshot that cannot be used. */
  drop(stream: string): Promise<void>;
}

/** For streams that stay short. */
export const NO_SNAPSHOTS: SnapshotStore = { load: async () => undefined, save: async () => {}, drop: async () => {} };

/** Stores the checkpoints of workflows. Projections store theirs with their rows. */
export interface CheckpointStore {
  load(reader: string): Promise<bigint>;
  save(reader: string, position: bigint): Promise<void>;
}

/**
 * The right, limited in time, to run a job that only one process may run at a time. Another process may get the lease
 * before this process notices that its own has ended. So a write that only the holder may make carries the fencing
 * token. It has no effect if its token is below the highest one that was used before.
 */
export interface Lease {
  /** Fencing token: higher than the tokens of all earlier leases of the job; an integer below 2^53. */
  readonly token: number;
  /** Aborts when the lease has ended. A process that was suspended may notice this late; use `isHeld` to be sure. */
  readonly signal: AbortSignal;
  /** Whether the lease is still held, by a clock that continues while this process is suspended. */
  isHeld(): boolean;
}

/** The lease of this process has ended, or a later one has been used. The action that threw the error was not done. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/** A projection cannot apply an event. It waits until it can, or until an operator approves skipping the event. */
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

/** A problem that lasts until an operator acts. If it is reported, the log has it as an error and not as a warning. */
export class ActionRequiredError extends Error {
  override readonly name = 'ActionRequiredError';
}

export interface WaitOptions {
  /** Ends the wait early. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the process may exit before the end of the wait; false by default. */
  readonly isBackground?: boolean;
}

/** Time that passes, apart from the date. */
export interface Timers {
  /** Returns the milliseconds of a clock that is never set. Only the difference of two values has a meaning. */
  now(): number;
  /** Waits for this time, or until the signal aborts. */
  sleep(milliseconds: number, options?: WaitOptions): Promise<void>;
  /** Calls `work` after this time, unless the returned function is called before. */
  startTimer(milliseconds: number, work: () => void, options?: Pick<WaitOptions, 'isBackground'>): () => void;
}

export interface Randomness {
  /** Returns a number from 0 to below 1. Anyone may be able to predict it. */
  chance(): number;
  /** Returns a UUID that nobody can predict. */
  generateId(): string;
  /** Returns bytes that nobody can predict, for keys and nonces. */
  generateBytes(length: number): Uint8Array;
}

/**
 * Time, randomness and reports of a process. Kernel, domain, application and sagas get these only from here, so that a
 * simulation can run them in virtual time and repeat a run from its seed.
 */
export interface Runtime extends Timers, Randomness {
  /** Reports a failure that no caller waits for, such as a snapshot that could not be saved. */
  reportError(problem: string, error: unknown): void;
}
