import { type Cause, toMetadata } from './cause.ts';
import { type Decider, fold, type StateCodec } from './decider.ts';
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
import { withStoreTimeout } from './store-timeout.ts';
import type { CachedStream, StreamStateCache } from './stream-state-cache.ts';
import { UnknownEventError } from './upcasting.ts';

/** Commands that are decided and appended together at most. */
const MAX_GROUP_SIZE = 256;
/** Times a group is decided again after another writer was first. */
const MAX_CONFLICTS = 100;
/** From here on a loser waits a moment, so that several replicas on one hot stream do not keep step. */
const CONFLICTS_BEFORE_WAITING = 3;
/** So long a group is tried before those who wait for it are told that the store is away: they do not wait five seconds, */
const COMMAND_TIMEOUT_MS = 4_500;
/** unless other writers were first for so long. */
const MIN_ATTEMPT_TIMEOUT_MS = 200;
/** Times an append with unknown outcome is sent again, with the same ids. */
const MAX_RESENDS = 16;
const MIN_RESEND_BACKOFF_MS = 20;
const MAX_RESEND_BACKOFF_MS = 500;
/** Facts between two snapshots of a stream: bounds how much is read when it is first used. */
const EVENTS_PER_SNAPSHOT = 1_000;

/** What became of a command: the facts that followed (`[]`: it was already so) and where its stream then ended. */
export interface CommandOutcome<Event, State = unknown> extends StreamHead {
  readonly events: readonly Event[];
  /** What the stream's facts came to with these: an answer can be given from it, whatever the read models show. */
  readonly state: State;
}

interface FoldedStream<State> extends StreamHead {
  readonly state: State;
  /** The id of the last fact; empty where there is none. */
  readonly lastEventId: string;
}

interface PendingCommand<Command, State, Event> {
  readonly command: Command;
  readonly cause: Cause;
  resolve(outcome: CommandOutcome<Event, State>): void;
  reject(error: unknown): void;
}

/** The store refuses an append, of which nothing was stored. */
class AppendRejectedError extends Error {
  constructor(readonly reason: unknown) {
    super('the store refuses an append');
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
  /** About what a state takes in memory, where that is more than a few KB. Asked after each group, so it must be quick. */
  estimateBytes?(state: State): number;
  /** How long a command is tried, in milliseconds; 4.5 s where this is left out. */
  readonly timeoutMs?: number;
}

/** One stream: its folded state, and the queue of commands that wait for it. */
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
    this.cache.touch(this, this.folded ? (this.options.estimateBytes?.(this.folded.state) ?? 0) : 0);
  }

  /** Answers each command of a group. Not an async function: each group would pay for it. */
  private serve(group: readonly PendingCommand<Command, State, Event>[]): Promise<void> {
    return this.commit(group).catch((error: unknown) => this.handleCommitFailure(group, error));
  }

  /**
   * A group that the store refuses is tried in halves, at last command by command, so that neither what is too large together
   * nor one command that cannot be stored takes others with it.
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
    // Where the store is away, what was folded is the beginning of the stream still: an append to another end would be stale, and any
    // other answer is confirmed first. Else what is stored is no longer known.
    if (!(reason instanceof StoreUnavailableError)) this.folded = undefined;
    const { runtime } = this.options;
    if (reason instanceof UnknownEventError) runtime.reportError(`${this.stream} cannot be used`, reason);
    else if (error instanceof AppendRejectedError)
      runtime.reportError(`${this.stream} cannot take what follows from ${group[0]?.command.type}`, reason);
    for (const pendingCommand of group) pendingCommand.reject(reason);
    if (!(reason instanceof StoreUnavailableError)) return;
    const queueError = new StoreUnavailableError('others have waited in vain', { cause: reason }); // and these would, as long
    for (const pendingCommand of this.queue.splice(0)) pendingCommand.reject(queueError);
  }

  /**
   * Decides a group and appends what follows in one conditional append. An answer that appends nothing (a rejection,
   * or "already so") is only given on a state that the store has just confirmed: another replica may have moved on.
   */
  private async commit(group: readonly PendingCommand<Command, State, Event>[]): Promise<void> {
    let isBaseCurrent = this.folded === undefined;
    let base = this.folded ?? (await this.load());
    const deadline = performance.now() + (this.options.timeoutMs ?? COMMAND_TIMEOUT_MS);
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts++) {
      const { decisions, state, appended: newEvents } = this.decideAll(base.state, group);
      if (newEvents.length > 0) {
        this.folded = base; // should the append be refused, this is still what the stream comes to
        const head = await this.appendWithRetries(base.revision, newEvents, deadline);
        if (head !== 'stale') {
          const { revision, position } = head;
          const { id: lastEventId } = newEvents[newEvents.length - 1] as NewEvent;
          return this.settle(group, decisions, { revision, position, state, lastEventId });
        }
      } else if (isBaseCurrent) {
        return this.settle(group, decisions, base);
      }
      if (conflicts >= CONFLICTS_BEFORE_WAITING) await this.options.runtime.sleep(Math.random() * conflicts);
      base = await this.catchUp(base);
      isBaseCurrent = true;
    }
    throw new StoreUnavailableError(`${this.stream} is too busy: another writer was first ${MAX_CONFLICTS} times`);
  }

  /** Decides each command on the state that those before it left; one that is refused does not stop the others. */
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
    if (revision - this.snapshotRevision >= EVENTS_PER_SNAPSHOT) this.saveSnapshot(folded);
  }

  /** After a lost answer the same ids are sent again, which the store takes as one append. */
  private async appendWithRetries(
    expected: number,
    events: readonly NewEvent[],
    deadline: number,
  ): Promise<StreamHead | 'stale'> {
    const { store, runtime } = this.options;
    for (let resends = 0; ; resends++) {
      try {
        return await withStoreTimeout(
          Math.max(deadline - performance.now(), MIN_ATTEMPT_TIMEOUT_MS),
          store.append(this.stream, expected, events),
        );
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw new AppendRejectedError(error);
        const wait = Math.min(MIN_RESEND_BACKOFF_MS * 2 ** resends, MAX_RESEND_BACKOFF_MS);
        if (resends >= MAX_RESENDS || performance.now() + wait >= deadline)
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
   * Goes on from a snapshot. Undefined where the stream does not have the fact that it ends with: it is ahead of its stream, or
   * of another history, as behind a restored backup.
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
    const reason = new Error(`revision ${snapshot.revision} is not the fact that it was folded to`);
    runtime.reportError(`the snapshot of ${this.stream} is of another history`, reason);
    await snapshots?.store
      .drop(this.stream)
      .catch((error) => runtime.reportError('a snapshot could not be removed', error));
    return undefined;
  }

  /** A snapshot that cannot be read is as good as none: the facts say the same, and take longer. */
  private async loadSnapshot(): Promise<FoldedStream<State> | undefined> {
    const { snapshots, runtime } = this.options;
    try {
      const snapshot = await snapshots?.store.load(this.stream, snapshots.codec.version);
      if (!snapshots || !snapshot) return undefined;
      return { ...snapshot, state: snapshots.codec.decode(snapshot.state as never) };
    } catch (error) {
      runtime.reportError(`the snapshot of ${this.stream} cannot be read`, error);
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
      .catch((error: unknown) => runtime.reportError(`no snapshot of ${this.stream}`, error));
  }
}
