import { type EventReader, START_POSITION } from '#kernel';
import type { Foundation } from './foundation.ts';
import type { ProgressTask, StartProgress } from './progress.ts';

/**
 * Passes the parts of a source on, and shows how much of a task is done.
 * @param countDone returns what is done once a part was processed
 * @param startProgress undefined to show nothing
 */
export async function* trackProgress<T>(
  source: AsyncIterable<T>,
  task: ProgressTask,
  countDone: (part: T) => number,
  startProgress: StartProgress | undefined,
): AsyncGenerator<T> {
  const progress = startProgress?.(task);
  try {
    for await (const part of source) {
      yield part;
      progress?.update(countDone(part));
    }
  } finally {
    progress?.finish();
  }
}

/** Returns a reader that shows the progress when it reads the events from the first one on. */
export function createReplayReader(
  name: string,
  reader: Pick<EventReader, 'readAll'>,
  { store, settings }: Pick<Foundation, 'store' | 'settings'>,
  startProgress: StartProgress | undefined,
): Pick<EventReader, 'readAll'> {
  if (!startProgress) return reader;
  async function* replay() {
    const total = Math.max(0, Number(await store.readLastPosition()));
    // A position in EventStoreDB is an offset in its log.
    const task = { name, total, unit: settings.eventStoreUrl === undefined ? 'events' : 'bytes' };
    yield* trackProgress(reader.readAll(START_POSITION), task, ({ position }) => Number(position), startProgress);
  }
  return { readAll: (after) => (after === START_POSITION ? replay() : reader.readAll(after)) };
}
