import type { EventBatch } from '#kernel';
import type { LogPage } from './pages.ts';

/** How a store reads its log. */
export interface LogSource {
  /** What is behind a position now, or as much of it as one call returns. Its position is `after` where there is nothing. */
  page(after: bigint): Promise<LogPage>;

  /** Resolves when it is worth asking for what is behind a position, or when `signal` aborts. */
  grown(after: bigint, signal: AbortSignal): Promise<void>;
}

/** Pages that are kept for followers that come to them later. */
const KEPT_PAGES = 4;

/** A page that is being read, or was. */
interface Reading {
  readonly page: Promise<LogPage>;
  readonly abandoned: AbortController;
  /** Followers that wait for it, or use it. */
  takers: number;
  done: boolean;
}

/**
 * The log as all followers of a process see it: a page is read once, by whoever comes to it first, and is there for those
 * that come soon behind. One that lags further reads by itself, until it comes to where another one has been.
 */
export class SharedLogReader {
  /** By the position that they are behind. */
  private readonly readings = new Map<bigint, Reading>();

  constructor(private readonly source: LogSource) {}

  /** @throws what the source throws: then it is for the caller to begin again */
  async *follow(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    let position = after;
    let next: Reading | undefined;
    try {
      for (;;) {
        const reading = next ?? this.take(position);
        next = reading;
        const page = await unlessAborted(reading.page, signal);
        if (!page) return;
        // Where there is more already, it is on its way while this page is used. Else facts gather meanwhile.
        next = page.full ? this.take(page.position) : undefined;
        this.leave(position, reading);
        position = page.position;
        yield { events: page.events, position };
      }
    } finally {
      if (next) this.leave(position, next);
    }
  }

  private take(after: bigint): Reading {
    const reading = this.readings.get(after) ?? this.begin(after);
    reading.takers++;
    return reading;
  }

  private leave(after: bigint, reading: Reading): void {
    reading.takers--;
    if (reading.takers > 0) return;
    if (reading.done) {
      this.forgetOldest();
    } else {
      reading.abandoned.abort();
      this.forget(after, reading);
    }
  }

  private begin(after: bigint): Reading {
    const abandoned = new AbortController();
    const page = this.read(after, abandoned.signal);
    const reading = { page, abandoned, takers: 0, done: false };
    this.readings.set(after, reading);
    page.then(
      () => {
        reading.done = true;
      },
      () => this.forget(after, reading), // thrown where it is awaited
    );
    return reading;
  }

  private async read(after: bigint, abandoned: AbortSignal): Promise<LogPage> {
    for (;;) {
      await this.source.grown(after, abandoned);
      abandoned.throwIfAborted();
      const page = await this.source.page(after);
      if (page.position > after) return this.upToAnother(page, after);
    }
  }

  /** Ends where another follower has been or is, so that this one goes on with the same pages. */
  private upToAnother(page: LogPage, after: bigint): LogPage {
    let known = after;
    for (const position of this.readings.keys()) if (position > known && position < page.position) known = position;
    if (known === after) return page;
    return { events: page.events.filter(({ position }) => position <= known), position: known, full: true };
  }

  private forget(after: bigint, reading: Reading): void {
    if (this.readings.get(after) === reading) this.readings.delete(after);
  }

  private forgetOldest(): void {
    const unused = [...this.readings].filter(([, { takers, done }]) => done && takers === 0);
    for (const [after] of unused.slice(0, Math.max(0, unused.length - KEPT_PAGES))) this.readings.delete(after);
  }
}

/** Undefined as soon as `signal` aborts. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const aborted = () => resolve(undefined);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}
