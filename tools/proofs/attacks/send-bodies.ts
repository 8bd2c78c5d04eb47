/**
 * Sends bodies over a fixed number of connections without a pause. Runs in a separate thread, so that it does not delay
 * the measurements of the main thread (large-bodies.ts).
 */
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { Agent, request } from 'undici';
import type { WorstBody } from './worst-bodies.ts';

export interface SenderParams {
  readonly api: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly bodies: readonly WorstBody[];
}

/** The results, sent after the message to stop. */
export interface SentBodies {
  readonly byStatus: Readonly<Record<string, number>>;
  readonly megabytes: number;
}

// Attackers have hosts of their own. On Linux this is the priority of this thread alone.
setPriority(constants.priority.PRIORITY_LOW);

const { api, headers: credentials, connections, bodies } = workerData as SenderParams;
/** Kinds of bodies follow each other in the list, so neighbours are sent at different times. */
const STRIDE = 71;
const byStatus: Record<string, number> = {};
let [bytes, next, isOver] = [0, 0, false];

async function sendBodies(): Promise<void> {
  const dispatcher = new Agent({ connections: 1 });
  while (!isOver) {
    const { path, contentType, headers, body } = bodies[(next++ * STRIDE) % bodies.length] as WorstBody;
    const sent = { ...credentials, 'content-type': contentType, ...headers };
    const options = { method: 'POST', headers: sent, body, dispatcher } as const;
    const response = await request(api + path, options).catch(() => undefined); // counted below
    await response?.body.dump().catch(() => {}); // only the status counts
    const status = response?.statusCode ?? 'disconnected';
    byStatus[status] = (byStatus[status] ?? 0) + 1;
    bytes += body.length;
  }
  await dispatcher.close();
}

parentPort?.postMessage('ready');
parentPort?.once('message', async () => {
  const sending = Array.from({ length: connections }, sendBodies);
  parentPort?.once('message', async () => {
    isOver = true;
    await Promise.all(sending);
    parentPort?.postMessage({ byStatus, megabytes: Math.round(bytes / 1e6) } satisfies SentBodies);
  });
});
