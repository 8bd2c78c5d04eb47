import { randomUUID } from 'node:crypto';

export const NO_STREAM = -1;

/** Assumed size of an event without its content, for positions, which are byte offsets. */
const ENVELOPE_BYTES = 100;
/** `created` counts ticks of 100 nanoseconds. */
const TICKS_PER_MS = 10_000n;

export interface ProposedEvent {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

export interface StoredLogEntry extends ProposedEvent {
  readonly stream: string;
  readonly revision: number;
  /** Offset of the entry. The entry is its own commit, so this is both its commit and its prepare position. */
  readonly position: bigint;
  readonly created: bigint;
}

/** One append as it was stored. */
export interface StoredAppend {
  readonly stream: string;
  /** In ticks of 100 nanoseconds. */
  readonly created: bigint;
  readonly events: readonly ProposedEvent[];
}

/** Stores a log for the next process. */
export interface LogStorage {
  /** Yields the appends in their order. */
  read(): Iterable<StoredAppend>;
  add(stored: StoredAppend): void;
}

/** A position between entries: after every entry whose position is less than or equal to it. */
export interface LogPosition {
  readonly commit: bigint;
  readonly prepare: bigint;
}

export const BEFORE_ALL: LogPosition = { commit: -1n, prepare: -1n };

export type AppendResult =
  | { readonly kind: 'stored'; readonly revision: number; readonly position: bigint }
  | { readonly kind: 'wrong-version'; readonly current: number }
  | { readonly kind: 'too-big'; readonly limit: number };

/**
 * The log of an EventStoreDB node, with the server's rules for appends. Its first entry is a system event, as on a real
 * server.
 */
export class EventLog {
  readonly entries: StoredLogEntry[] = [];
  private readonly streams = new Map<string, StoredLogEntry[]>();
  private readonly waiting = new Set<() => void>();
  private nextPosition = 0n;
  maxAppendSize: number;

  /** @param storage without it, the entries are lost at the end of the process */
  constructor(
    maxAppendSize: number,
    private readonly storage?: LogStorage,
  ) {
    this.maxAppendSize = maxAppendSize;
    for (const stored of storage?.read() ?? []) this.addEntries(stored);
    if (this.entries.length > 0) return;
    const user = { id: randomUUID(), type: '$UserCreated', contentType: 'application/json' };
    this.write('$user-admin', [{ ...user, data: Buffer.from('{}'), metadata: new Uint8Array() }]);
  }

  /** Position of the next entry. */
  get end(): bigint {
    return this.nextPosition;
  }

  getStream(name: string): readonly StoredLogEntry[] {
    return this.streams.get(name) ?? [];
  }

  /** Appends events. Repeating the same ids at the same revision returns the result of the stored append. */
  append(stream: string, expected: number, events: readonly ProposedEvent[]): AppendResult {
    const size = events.reduce(
      (sum, { type, data, metadata }) => sum + 2 * type.length + data.length + metadata.length,
      0,
    );
    if (size > this.maxAppendSize) return { kind: 'too-big', limit: this.maxAppendSize };
    const streamEntries = this.getStream(stream);
    const current = streamEntries.length - 1;
    if (expected > current) return { kind: 'wrong-version', current };
    if (expected < current) {
      const isRepeat = events.every(({ id }, i) => streamEntries[expected + 1 + i]?.id === id);
      const last = streamEntries[expected + events.length];
      if (!isRepeat || !last) return { kind: 'wrong-version', current };
      return { kind: 'stored', revision: last.revision, position: last.position };
    }
    const last = this.write(stream, events);
    return { kind: 'stored', revision: last.revision, position: last.position };
  }

  /** Returns the index of the first entry after a position. */
  findIndexAfter({ commit, prepare }: LogPosition): number {
    let [low, high] = [0, this.entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const { position } = this.entries[middle] as StoredLogEntry;
      if (position > commit || (position === commit && position > prepare)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * Whether the commit position is that of an entry or of the end: a real server cannot read from the middle of an
   * entry.
   */
  isBoundary({ commit }: LogPosition): boolean {
    return (
      commit === this.end || this.entries[this.findIndexAfter({ commit, prepare: commit }) - 1]?.position === commit
    );
  }

  /** Resolves when there is an entry at `index`, or when `signal` aborts. */
  async waitForIndex(index: number, signal: AbortSignal): Promise<void> {
    while (this.entries.length <= index && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          this.waiting.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        this.waiting.add(done);
        signal.addEventListener('abort', done, { once: true });
      });
    }
  }

  private write(stream: string, events: readonly ProposedEvent[]): StoredLogEntry {
    const stored = { stream, created: BigInt(Date.now()) * TICKS_PER_MS, events };
    this.storage?.add(stored);
    return this.addEntries(stored);
  }

  private addEntries({ stream, created, events }: StoredAppend): StoredLogEntry {
    const streamEntries = this.streams.get(stream) ?? [];
    this.streams.set(stream, streamEntries);
    for (const event of events) {
      const entry = { ...event, stream, revision: streamEntries.length, position: this.nextPosition, created };
      this.nextPosition += BigInt(ENVELOPE_BYTES + event.data.length + event.metadata.length);
      streamEntries.push(entry);
      this.entries.push(entry);
    }
    for (const done of this.waiting) done();
    return streamEntries.at(-1) as StoredLogEntry;
  }
}
