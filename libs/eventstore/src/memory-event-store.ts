import {
  type EventBatch,
  type EventStore,
  type NewEvent,
  START_POSITION,
  type StoredEvent,
  type StreamHead,
} from '#kernel';
import { assertKnownCategory } from './known-categories.ts';
import { serializeEvents } from './serialize-events.ts';

/** Events per batch. */
const PAGE_SIZE = 1_000;

/** An event store in memory, for tests. */
export class MemoryEventStore implements EventStore {
  /** Lower than that of the other stores, so that tests reach the limit with little data. */
  readonly maxAppendBytes = 512 * 1024;
  private readonly log: StoredEvent[] = [];
  private readonly streams = new Map<string, StoredEvent[]>();
  private readonly waiters = new Set<() => void>();

  /**
   * @param streamPrefixes prefixes of the stream names that may be appended to
   * @param getTime returns the booking time of an event, ISO 8601
   */
  constructor(
    private readonly streamPrefixes: readonly string[] = [''],
    private readonly getTime = () => new Date().toISOString(),
  ) {}

  async append(stream: string, expected: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'> {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    assertKnownCategory(stream, this.streamPrefixes);
    const { events: serialized } = serializeEvents(stream, events, this.maxAppendBytes);
    const existing = this.streams.get(stream) ?? [];
    const last = events.length + expected;
    if (existing.length !== expected + 1) {
      const isRepeated = events.every(({ id }, i) => existing[expected + 1 + i]?.id === id);
      return isRepeated ? { revision: last, position: (existing[last] as StoredEvent).position } : 'stale';
    }
    const appended = serialized.map(({ id, type, data, metadata }, i): StoredEvent => {
      const location = { stream, revision: existing.length + i, position: BigInt(this.log.length + i) };
      // Converted to JSON and back, as in every real store, so that tests detect data that JSON does not preserve.
      const stored = { data: JSON.parse(data), metadata: JSON.parse(metadata) };
      return { id, type, ...stored, ...location, recordedAt: this.getTime() };
    });
    existing.push(...appended);
    this.log.push(...appended);
    this.streams.set(stream, existing);
    for (const wake of this.waiters) wake();
    return { revision: last, position: (existing[last] as StoredEvent).position };
  }

  async *read(stream: string, after: number): AsyncGenerator<readonly StoredEvent[]> {
    const events = this.streams.get(stream)?.slice(after + 1) ?? [];
    for (let i = 0; i < events.length; i += PAGE_SIZE) yield events.slice(i, i + PAGE_SIZE);
  }

  async readHead(stream: string): Promise<StreamHead | undefined> {
    const last = this.streams.get(stream)?.at(-1);
    return last && { revision: last.revision, position: last.position };
  }

  async readLastPosition(): Promise<bigint> {
    return this.log.at(-1)?.position ?? START_POSITION;
  }

  async *readAll(after: bigint): AsyncGenerator<EventBatch> {
    const end = this.log.length;
    for (let i = Number(after) + 1; i < end; i += PAGE_SIZE) {
      const events = this.log.slice(i, Math.min(i + PAGE_SIZE, end));
      yield { events, position: (events.at(-1) as StoredEvent).position };
    }
  }

  async *subscribe(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    let position = after;
    while (!signal.aborted) {
      for await (const batch of this.readAll(position)) {
        position = batch.position;
        yield batch;
        if (signal.aborted) return;
      }
      if (signal.aborted || Number(position) < this.log.length - 1) continue; // appended since `readAll`
      await new Promise<void>((resolve) => {
        const done = () => {
          this.waiters.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        this.waiters.add(done);
        signal.addEventListener('abort', done, { once: true });
      });
    }
  }

  async close(): Promise<void> {}
}
