import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type StartProgress, trackProgress } from '#foundation';

const BYTES_PER_MB = 1_000_000;

/**
 * Returns the content of a file, and shows how much of it was read.
 * @param name of the work
 */
export async function* readWithProgress(
  file: string,
  name: string,
  startProgress: StartProgress | undefined,
): AsyncGenerator<Buffer> {
  const { size } = await stat(file);
  const stream = createReadStream(file);
  const task = { name, total: size / BYTES_PER_MB, unit: 'MB' };
  yield* trackProgress<Buffer>(stream, task, () => stream.bytesRead / BYTES_PER_MB, startProgress);
}
