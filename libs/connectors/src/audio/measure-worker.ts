/** Counts recordings beside the main thread, one after the other. */
import { readFile } from 'node:fs/promises';
import { parentPort } from 'node:worker_threads';
import { measureRecording } from './measure-recording.ts';

parentPort?.on('message', async (path: string) => {
  parentPort?.postMessage(await measureFile(path));
});

/** What has more parts than a recording, or ends where there must be more, is none. */
async function measureFile(path: string) {
  try {
    return measureRecording(await readFile(path));
  } catch {
    return undefined;
  }
}
