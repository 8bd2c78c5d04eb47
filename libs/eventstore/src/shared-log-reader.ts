import type { EventBatch } from '#kernel';
import type { LogPage } from './pages.ts';

/** Reads the log of a store. */
export interface LogSource {
  /** Reads one page after a position. The position of the page is `after` if the log has no later entry. */
  readPage(after: bigint): Promise<LogPage>;

  /** Resolves when there may be events after a position, or when `signal` aborts. */
  waitForEvents(after: bigint, signal: AbortSignal): Promise<void>;
}

/** Maximum number of unused pages that stay cached for subscribers that reach them later. */
const MAX_CACHED_PAGES = 4;

/** A page that is being read or was read. */
interface SharedPageRead {
  readonly page: Promise<LogPage>;
  readonly abortController: AbortController;
  /** Number of subscribers that wait for the page, or need it next. */
  readerCount: number;
  isDone: boolean;
}

/**
 * Reads the log once for all subscribers of a process. The first subscriber that needs a page reads it, and those that
 * reach it soon after share it. A subscriber that lags further reads its own pages until it reaches a shared page.
 */
export class SharedLogReader {
  /** By the position after which they were read. */
  private readonly readings = new Map<bigint, SharedPageRead>();

  constructor(private readonly source: LogSource) {}

  /**
   * Returns all events after a position until `signal` aborts.
   * @throws any error of the source; the caller then subscribes again
   */
  async *subscribe(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    let position = after;
    let next: SharedPageRead | undefined;
    try {
      for (;;) {
        const reading = next ?? this.acquire(position);
        next = reading;
        const page = await raceAbort(reading.page, signal);
        if (!page) return;
        // After a full page the next one is requested while this one is processed. Otherwise it is requested later, so
        // that new events are read together.
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
      () => this.evict(after, reading), // subscribers that await the page get the error
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

  /** Ends the page at the last position in it where another page starts, so that readers of both then share pages. */
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

/** Resolves with undefined as soon as `signal` aborts. */
function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(undefined);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
