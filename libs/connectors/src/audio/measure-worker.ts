/** Worker thread that measures recordings one after the other. */
import { readFile } from 'node:fs/promises';
import { parentPort } from 'node:worker_threads';
import { measureRecording } from './measure-recording.ts';

parentPort?.on('message', async (path: string) => {
  parentPort?.postMessage(await measureFile(path));
});

/** Returns undefined for any error, such as a file with too many tracks: it is not accepted as a recording. */
async function measureFile(path: string) {
  try {
    return measureRecording(await readFile(path));
  } catch {
    return undefined;
  }
}
