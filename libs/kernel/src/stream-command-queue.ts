import { type Cause, toMetadata } from './cause.ts';
import { type Decider, fold, type StateCodec } from './decider.ts';
import { estimateBytes } from './estimate-bytes.ts';
import type { Message, NewEvent, StoredEvent } from './message.ts';
import {
  type EventAppender,
  type EventReader,
  NO_STREAM,
  type Runtime,
  type SnapshotStore,
  START_POSITION,
  StoreUnavailableError,
  type StreamHead,
  UnknownOutcomeError,
} from './ports.ts';
import { calculateBackoffMs } from './retry.ts';
import { withStoreTimeout } from './store-timeout.ts';
import type { CachedStream, StreamStateCache } from './stream-state-cache.ts';
import { UnknownEventError } from './upcasting.ts';

/** Maximum number of commands that are decided and appended together (group commit). */
const MAX_GROUP_SIZE = 256;
/** Maximum number of times that a group is decided while other writers append first. */
const MAX_CONFLICTS = 100;
/**
 * After this many conflicts, each further one is followed by a random delay, so that replicas do not retry in lockstep.
 */
const CONFLICTS_BEFORE_WAITING = 3;
/** How long the append of a group is retried while the store is unavailable, from when its stream is loaded. */
const COMMAND_TIMEOUT_MS = 4_500;
/** Minimum time for one append, even if conflicts have used up the timeout. */
const MIN_ATTEMPT_TIMEOUT_MS = 200;
/** Maximum number of times that an append with an unknown outcome is sent again, with the same event ids. */
const MAX_RESENDS = 16;
const RESEND_BACKOFF = { minMs: 20, maxMs: 500 };
const EVENTS_PER_SNAPSHOT = 1_000;

/**
 * The result of a command: its events (`[]` if it was already fulfilled) and the head of its stream after its group.
 */
export interface CommandOutcome<Event, State = unknown> extends StreamHead {
  readonly events: readonly Event[];
  /** The state of the stream after these events. Responses can be built from it without waiting for read models. */
  readonly state: State;
}

interface FoldedStream<State> extends StreamHead {
  readonly state: State;
  /** Empty for a stream without events. */
  readonly lastEventId: string;
}

interface PendingCommand<Command, State, Event> {
  readonly command: Command;
  readonly cause: Cause;
  resolve(outcome: CommandOutcome<Event, State>): void;
  reject(error: unknown): void;
}

/** The store rejected an append and stored nothing. */
class AppendRejectedError extends Error {
  constructor(readonly reason: unknown) {
    super('the store rejected an append');
  }
}

interface Decision<State, Event> {
  readonly events: readonly Event[];
  readonly state: State;
  readonly error?: unknown;
}

export interface StreamCommandQueueOptions<Command extends Message, State, Event extends Message> {
  readonly decider: Decider<Command, State, Event>;
  readonly store: EventReader & EventAppender;
  readonly runtime: Runtime;
  readonly snapshots?: { readonly store: SnapshotStore; readonly codec: StateCodec<State> };
  /**
   * Estimates the memory of a state, for states that may have thousands of values; by default, all values are counted.
   * Must be cheap: it is called after each read, and each time that the queue of commands has become empty.
   */
  estimateBytes?(state: State): number;
  /** How long an append is retried while the store is unavailable; 4.5 s by default. */
  readonly timeoutMs?: number;
  /**
   * A snapshot is saved after this many events, so that loading a stream reads not many more events than this; 1,000 by
   * default.
   */
  readonly eventsPerSnapshot?: number;
}

/** The cached state of one stream and the queue of its commands. */
export class StreamCommandQueue<Command extends Message, State, Event extends Message> implements CachedStream {
  private folded: FoldedStream<State> | undefined;
  private snapshotRevision = NO_STREAM;
  private queue: PendingCommand<Command, State, Event>[] = [];
  private isDraining = false;
  private readerCount = 0;

  constructor(
    private readonly stream: string,
    private readonly options: StreamCommandQueueOptions<Command, State, Event>,
    private readonly cache: StreamStateCache,
    readonly evict: () => void,
  ) {}

  get isIdle(): boolean {
    return !this.isDraining && this.readerCount === 0;
  }

  submit(command: Command, cause: Cause): Promise<CommandOutcome<Event, State>> {
    return new Promise((resolve, reject) => {
      this.queue.push({ command, cause, resolve, reject });
      if (!this.isDraining) void this.drain();
    });
  }

  async read(): Promise<State> {
    this.readerCount++;
    try {
      const read = await (this.folded ? this.catchUp(this.folded) : this.load());
      if (!this.isDraining && read.revision > (this.folded?.revision ?? NO_STREAM)) this.folded = read;
      return read.state;
    } finally {
      this.readerCount--;
      this.touchCache();
    }
  }

  private async drain(): Promise<void> {
    this.isDraining = true;
    await Promise.resolve(); // commands of the same tick join the first group
    while (this.queue.length > 0) await this.serve(this.queue.splice(0, MAX_GROUP_SIZE));
    this.isDraining = false;
    this.touchCache();
  }

  private touchCache(): void {
    const { estimateBytes: estimateStateBytes = estimateBytes } = this.options;
    this.cache.touch(this, this.folded ? estimateStateBytes(this.folded.state) : 0);
  }

  /**
   * Resolves or rejects every command of a group. Not an async function, because that would add overhead to every
   * group.
   */
  private serve(group: readonly PendingCommand<Command, State, Event>[]): Promise<void> {
    return this.commit(group).catch((error: unknown) => this.handleCommitFailure(group, error));
  }

  /**
   * Splits a group that the store rejected into halves, down to single commands. Events that are too large only
   * together are then stored in parts, and a command that cannot be stored does not fail the others. After any other
   * failure, and for a single command, rejects the commands of the group.
   */
  private async handleCommitFailure(
    group: readonly PendingCommand<Command, State, Event>[],
    error: unknown,
  ): Promise<void> {
    if (error instanceof AppendRejectedError && group.length > 1) {
      const middle = group.length >> 1;
      await this.serve(group.slice(0, middle));
      return this.serve(group.slice(middle));
    }
    const reason = error instanceof AppendRejectedError ? error.reason : error;
    // While the store is unavailable, the cached state is still a prefix of the stream. An append at an outdated
    // revision would be stale, and every other result is confirmed first. After any other error it is not known
    // whether the cached state is correct, so the next command loads the stream.
    if (!(reason instanceof StoreUnavailableError)) this.folded = undefined;
    const { runtime } = this.options;
    if (reason instanceof UnknownEventError) runtime.reportError(`${this.stream} cannot be used`, reason);
    else if (error instanceof AppendRejectedError)
      runtime.reportError(`${this.stream}: the store rejects the events of ${group[0]?.command.type}`, reason);
    for (const pendingCommand of group) pendingCommand.reject(reason);
    if (!(reason instanceof StoreUnavailableError)) return;
    // Commands in the queue would wait just as long, so they fail now.
    const queueError = new StoreUnavailableError('earlier commands of the stream timed out', { cause: reason });
    for (const pendingCommand of this.queue.splice(0)) pendingCommand.reject(queueError);
  }

  /**
   * Decides a group and appends its events in one conditional append. Results without events (a rejection, or a command
   * that was already fulfilled) are returned only for a state that the store has just confirmed: another replica may
   * have appended.
   */
  private async commit(group: readonly PendingCommand<Command, State, Event>[]): Promise<void> {
    let isBaseCurrent = this.folded === undefined;
    let base = this.folded ?? (await this.load());
    const { runtime } = this.options;
    const deadline = runtime.now() + (this.options.timeoutMs ?? COMMAND_TIMEOUT_MS);
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts++) {
      const { decisions, state, appended: newEvents } = this.decideAll(base.state, group);
      if (newEvents.length > 0) {
        this.folded = base; // still correct if the append is rejected
        const head = await this.appendWithRetries(base.revision, newEvents, deadline);
        if (head !== 'stale') {
          const { revision, position } = head;
          const { id: lastEventId } = newEvents[newEvents.length - 1] as NewEvent;
          return this.settle(group, decisions, { revision, position, state, lastEventId });
        }
      } else if (isBaseCurrent) {
        return this.settle(group, decisions, base);
      }
      if (conflicts >= CONFLICTS_BEFORE_WAITING) await runtime.sleep(runtime.chance() * conflicts);
      base = await this.catchUp(base);
      isBaseCurrent = true;
    }
    throw new StoreUnavailableError(`${this.stream} is too busy: ${MAX_CONFLICTS} write conflicts in a row`);
  }

  /** Decides each command on the state after the commands before it. A rejected command does not stop the others. */
  private decideAll(from: State, group: readonly PendingCommand<Command, State, Event>[]) {
    const { decider, runtime } = this.options;
    const decisions: Decision<State, Event>[] = [];
    const newEvents: NewEvent[] = [];
    let state = from;
    for (const { command, cause } of group) {
      try {
        const events = decider.decide(command, state);
        state = fold(decider, state, events);
        const metadata = toMetadata(cause);
        for (const { type, data } of events) newEvents.push({ id: runtime.generateId(), type, data, metadata });
        decisions.push({ events, state });
      } catch (error) {
        decisions.push({ events: [], state, error });
      }
    }
    return { decisions, state, appended: newEvents };
  }

  private settle(
    group: readonly PendingCommand<Command, State, Event>[],
    decisions: readonly Decision<State, Event>[],
    folded: FoldedStream<State>,
  ): void {
    this.folded = folded;
    const { revision, position } = folded;
    group.forEach((pendingCommand, i) => {
      const { events, state, error } = decisions[i] as Decision<State, Event>;
      if (error === undefined) pendingCommand.resolve({ events, state, revision, position });
      else pendingCommand.reject(error);
    });
    const { eventsPerSnapshot = EVENTS_PER_SNAPSHOT } = this.options;
    if (revision - this.snapshotRevision >= eventsPerSnapshot) this.saveSnapshot(folded);
  }

  /**
   * Retries with the same event ids, which the store treats as one append. Not by `retry`, because nearly every append
   * succeeds at once, and each would pay for it. Not logged, because the caller gets the error of the last attempt.
   */
  private async appendWithRetries(
    expected: number,
    events: readonly NewEvent[],
    deadline: number,
  ): Promise<StreamHead | 'stale'> {
    const { store, runtime } = this.options;
    for (let resends = 0; ; resends++) {
      try {
        return await withStoreTimeout(
          runtime,
          Math.max(deadline - runtime.now(), MIN_ATTEMPT_TIMEOUT_MS),
          store.append(this.stream, expected, events),
        );
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw new AppendRejectedError(error);
        const wait = calculateBackoffMs({ ...RESEND_BACKOFF, chance: runtime.chance }, resends);
        if (resends >= MAX_RESENDS || runtime.now() + wait >= deadline)
          throw new UnknownOutcomeError(error.message, { cause: error });
        await runtime.sleep(wait);
      }
    }
  }

  private async load(): Promise<FoldedStream<State>> {
    const snapshot = await this.loadSnapshot();
    const folded = snapshot && (await this.resume(snapshot));
    this.snapshotRevision = folded ? (snapshot?.revision ?? NO_STREAM) : NO_STREAM;
    const state = this.options.decider.getInitialState();
    return folded ?? this.catchUp({ state, revision: NO_STREAM, position: START_POSITION, lastEventId: '' });
  }

  /**
   * Folds the events after a snapshot. Returns undefined if the stream does not have the event at which the snapshot
   * was taken: the snapshot is ahead of its stream, or belongs to other data, for example after a backup was restored.
   * Such a snapshot is removed.
   */
  private async resume(snapshot: FoldedStream<State>): Promise<FoldedStream<State> | undefined> {
    const { store, runtime, snapshots } = this.options;
    let folded: FoldedStream<State> | undefined;
    for await (const batch of store.read(this.stream, snapshot.revision - 1)) {
      const [first, ...rest] = batch;
      if (
        !folded &&
        (first?.id !== snapshot.lastEventId ||
          first.revision !== snapshot.revision ||
          first.position !== snapshot.position)
      )
        break;
      folded = folded ? this.foldEvents(folded, batch) : this.foldEvents(snapshot, rest);
    }
    if (folded) return folded;
    const reason = new Error(`the event at revision ${snapshot.revision} is not the one of the snapshot`);
    runtime.reportError(`the snapshot of ${this.stream} does not match its events`, reason);
    await snapshots?.store
      .drop(this.stream)
      .catch((error) => runtime.reportError('a snapshot could not be removed', error));
    return undefined;
  }

  /** A snapshot that cannot be read is ignored: folding all events gives the same state, only more slowly. */
  private async loadSnapshot(): Promise<FoldedStream<State> | undefined> {
    const { snapshots, runtime } = this.options;
    try {
      const snapshot = await snapshots?.store.load(this.stream, snapshots.codec.version);
      if (!snapshots || !snapshot) return undefined;
      return { ...snapshot, state: snapshots.codec.decode(snapshot.state as never) };
    } catch (error) {
      runtime.reportError(`the snapshot of ${this.stream} could not be read`, error);
      return undefined;
    }
  }

  private async catchUp(base: FoldedStream<State>): Promise<FoldedStream<State>> {
    let folded = base;
    for await (const batch of this.options.store.read(this.stream, base.revision))
      folded = this.foldEvents(folded, batch);
    return folded;
  }

  private foldEvents(base: FoldedStream<State>, events: readonly StoredEvent[]): FoldedStream<State> {
    const end = events.at(-1);
    if (!end) return base;
    const state = fold(this.options.decider, base.state, events as unknown as readonly Event[]);
    return { state, revision: end.revision, position: end.position, lastEventId: end.id };
  }

  private saveSnapshot({ state, ...head }: FoldedStream<State>): void {
    const { snapshots, runtime } = this.options;
    if (!snapshots) return;
    this.snapshotRevision = head.revision;
    snapshots.store
      .save(this.stream, snapshots.codec.version, { state: snapshots.codec.encode(state), ...head })
      .catch((error: unknown) => runtime.reportError(`the snapshot of ${this.stream} could not be saved`, error));
  }
}
