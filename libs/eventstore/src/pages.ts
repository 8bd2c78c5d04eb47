import type { EventBatch } from '#kernel';

/** The part of the log that one call returned. */
export interface LogPage extends EventBatch {
  /** More events are probably available, for example because the page has its maximum size. */
  readonly isFull: boolean;
}

/** Returns the pages after a position up to the current end. The next page is requested while one is processed. */
export async function* readPagesAfter(
  after: bigint,
  read: (after: bigint) => Promise<LogPage>,
): AsyncGenerator<EventBatch> {
  let next = read(after);
  for (let last = after; ; ) {
    const { events, position, isFull } = await next;
    if (isFull) {
      next = read(position);
      next.catch(() => {}); // `await next` throws it
    }
    if (position > last) yield { events, position };
    if (!isFull) return;
    last = position;
  }
}
