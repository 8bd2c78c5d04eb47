import type { EventBatch } from '#kernel';

/** What one call returned of the log. */
export interface LogPage extends EventBatch {
  /** There was no room for more, so there is probably more already. */
  readonly isFull: boolean;
}

/** What is behind a position now, page by page: the next one is on its way while one is used. */
export async function* readPagesAfter(
  after: bigint,
  read: (after: bigint) => Promise<LogPage>,
): AsyncGenerator<EventBatch> {
  let next = read(after);
  for (let last = after; ; ) {
    const { events, position, isFull } = await next;
    if (isFull) {
      next = read(position);
      next.catch(() => {}); // thrown where it is awaited
    }
    if (position > last) yield { events, position };
    if (!isFull) return;
    last = position;
  }
}
