import type { EventBatch } from '#kernel';
import type { LogPage } from './pages.ts';

/** How a store reads its log. */
export interface LogSource {
  /** What is behind a position now, or as much of it as one call returns. Its position is `after` where there is nothing. */
  readPage(after: bigint): Promise<LogPage>;

  /** Resolves when it is worth asking for what is behind a position, or when `signal` aborts. */
  waitForEvents(after: bigint, signal: AbortSignal): Promise<void>;
}

/** Pages that are kept for followers that come to them later. */
const MAX_CACHED_PAGES = 4;

/** A page that is being read, or was. */
interface SharedPageRead {
  readonly page: Promise<LogPage>;
  readonly abortController: AbortController;
  /** Followers that wait for it, or use it. */
  readerCount: number;
  isDone: boolean;
}

/**
 * The log as all followers of a process see it: a page is read once, by whoever comes to it first, and is there for those
 * that come soon behind. One that lags further reads by itself, until it comes to where another one has been.
 */
export class SharedLogReader {
  /** By the position that they are behind. */
  private readonly readings = new Map<bigint, SharedPageRead>();

  constructor(private readonly source: LogSource) {}

  /** @throws what the source throws: then it is for the caller to begin again */
  async *subscribe(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    let position = after;
    let next: SharedPageRead | undefined;
    try {
      for (;;) {
        const reading = next ?? this.acquire(position);
        next = reading;
        const page = await raceAbort(reading.page, signal);
        if (!page) return;
        // Where there is more already, it is on its way while this page is used. Else facts gather meanwhile.
        next = page.isFull ? this.acquire(page.position) : undefined;
        this.release(position, reading);
        position = page.position;
        yield { events: page.events, position };
      }
    } finally {
      if (next) this.release(position, next);
    }
  }

  private acquire(after: bigint): SharedPageRead {
    const reading = this.readings.get(after) ?? this.startRead(after);
    reading.readerCount++;
    return reading;
  }

  private release(after: bigint, reading: SharedPageRead): void {
    reading.readerCount--;
    if (reading.readerCount > 0) return;
    if (reading.isDone) {
      this.evictOldest();
    } else {
      reading.abortController.abort();
      this.evict(after, reading);
    }
  }

  private startRead(after: bigint): SharedPageRead {
    const abortController = new AbortController();
    const page = this.read(after, abortController.signal);
    const reading = { page, abortController, readerCount: 0, isDone: false };
    this.readings.set(after, reading);
    page.then(
      () => {
        reading.isDone = true;
      },
      () => this.evict(after, reading), // thrown where it is awaited
    );
    return reading;
  }

  private async read(after: bigint, signal: AbortSignal): Promise<LogPage> {
    for (;;) {
      await this.source.waitForEvents(after, signal);
      signal.throwIfAborted();
      const page = await this.source.readPage(after);
      if (page.position > after) return this.truncateToNextReader(page, after);
    }
  }

  /** Ends where another follower has been or is, so that this one goes on with the same pages. */
  private truncateToNextReader(page: LogPage, after: bigint): LogPage {
    let boundary = after;
    for (const position of this.readings.keys())
      if (position > boundary && position < page.position) boundary = position;
    if (boundary === after) return page;
    return { events: page.events.filter(({ position }) => position <= boundary), position: boundary, isFull: true };
  }

  private evict(after: bigint, reading: SharedPageRead): void {
    if (this.readings.get(after) === reading) this.readings.delete(after);
  }

  private evictOldest(): void {
    const unused = [...this.readings].filter(([, { readerCount, isDone }]) => isDone && readerCount === 0);
    for (const [after] of unused.slice(0, Math.max(0, unused.length - MAX_CACHED_PAGES))) this.readings.delete(after);
  }
}

/** Undefined as soon as `signal` aborts. */
function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(undefined);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
