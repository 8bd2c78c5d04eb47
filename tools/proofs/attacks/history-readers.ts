/**
 * Requests pages of a history without a pause. Runs in a separate thread, so that these requests do not delay the
 * measurements of the main thread (history.ts).
 */
import { parentPort, workerData } from 'node:worker_threads';

export interface ReadersParams {
  readonly api: string;
  readonly apiKey: string;
  readonly readers: number;
  /** Query strings of the pages. The nth reader starts at the nth one, modulo their number. */
  readonly queries: readonly string[];
}

/** The results, sent after the message to stop. */
export interface PagesRead {
  /** The duration of each request. */
  readonly durationsMs: readonly number[];
  readonly failed: number;
}

const { api, apiKey, readers, queries } = workerData as ReadersParams;
const durationsMs: number[] = [];
let failed = 0;
let isOver = false;
const reading = Array.from({ length: readers }, async (_, i) => {
  for (let n = i; !isOver; n++) {
    const started = performance.now();
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${api}/queries/history?${queries[n % queries.length]}`, { headers });
    await response.arrayBuffer();
    durationsMs.push(performance.now() - started);
    if (!response.ok) failed++;
  }
});
parentPort?.once('message', async () => {
  isOver = true;
  await Promise.all(reading);
  parentPort?.postMessage({ durationsMs, failed } satisfies PagesRead);
});
