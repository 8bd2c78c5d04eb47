/** Reads pages of a history without a pause, in a thread of its own, so that who measures others does not wait for it. */
import { parentPort, workerData } from 'node:worker_threads';

export interface Readers {
  readonly api: string;
  readonly apiKey: string;
  readonly readers: number;
  /** Queries of pages; each reader begins elsewhere. */
  readonly asked: readonly string[];
}

/** Sent when a message tells it to stop. */
export interface PagesRead {
  /** Milliseconds that each page took. */
  readonly took: readonly number[];
  readonly failed: number;
}

const { api, apiKey, readers, asked } = workerData as Readers;
const took: number[] = [];
let failed = 0;
let isOver = false;
const reading = Array.from({ length: readers }, async (_, i) => {
  for (let n = i; !isOver; n++) {
    const started = performance.now();
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${api}/queries/history?${asked[n % asked.length]}`, { headers });
    await response.arrayBuffer();
    took.push(performance.now() - started);
    if (!response.ok) failed++;
  }
});
parentPort?.once('message', async () => {
  isOver = true;
  await Promise.all(reading);
  parentPort?.postMessage({ took, failed } satisfies PagesRead);
});
