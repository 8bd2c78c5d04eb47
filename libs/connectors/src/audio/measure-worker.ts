/** Worker thread that measures recordings one after the other. */
import { readFile } from 'node:fs/promises';
import { parentPort } from 'node:worker_threads';
import { measureRecording } from './measure-recording.ts';

parentPort?.on('message', async (path: string) => {
  parentPort?.postMessage(await measureFile(path));
});

/** Returns undefined for any error, such as too many tracks: the file is then not accepted as a recording. */
async function measureFile(path: string) {
  try {
    return measureRecording(await readFile(path));
  } catch {
    return undefined; // no recording that the parsers can read
  }
}
