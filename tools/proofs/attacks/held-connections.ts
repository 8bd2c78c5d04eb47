/**
 * Many idle connections, stalled uploads and unread responses at once. Measures their effect on the latency of another
 * customer and on memory.
 */
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Agent, request } from 'undici';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { readProcessUsage } from '../../processes.ts';
import type { Attack, Finding } from './attack.ts';
import type { HolderParams } from './hold-connections.ts';

const IDLE = 8_000;
const STALLED = 40;
/**
 * Unread streams that fit into the socket buffers and last longer than the attack. They are only load: whether the
 * gateway ends them is not checked.
 */
const UNREAD = 1_000;
/** Unread responses that are longer than the socket buffers, which hold about 4 MB. The gateway must end them. */
const FULL = 8;
const BODY_BYTES = 20 * 1024 * 1024;
const SENT_BYTES = 1024 * 1024;
const CHAT = { model: 'openai/gpt-5-mini' };
/** Interval between the other customer's requests. It is constant, because latency is measured and not throughput. */
const REQUEST_INTERVAL_MS = 20;
const MEASURED_MS = 15_000;
/**
 * Idle connections, stalled uploads and full streams must end within this time. A full stream ends after a minute
 * without progress, plus the time that the bytes in the gateway's own write buffer would take at 4 KiB per second.
 */
const DISCONNECTED_WITHIN_MS = 130_000;
const MAX_EXTRA_MB = 400;
/** A p99 up to this value passes even if it is more than twice the baseline. */
const MIN_P99_MS = 25;

export const heldConnections: Attack = {
  name: 'held-connections',
  description: `${IDLE} idle connections, ${STALLED} stalled uploads, ${UNREAD} unread streams, ${FULL} more that fill their socket buffers`,
  run: runAttack,
};

async function runAttack(directory: string): Promise<Finding> {
  const cluster = await ProofCluster.start(directory, 1, { MAX_CONNECTIONS: '20000' });
  const held: Worker[] = [];
  try {
    const [api = ''] = cluster.gateways;
    const pid = cluster.processes.get('gateway 1')?.pid ?? 0;
    const honest = await cluster.createCustomer(5);
    const [attacker, filler] = [await cluster.createCustomer(100), await cluster.createCustomer(100)];
    await measureP99Ms(api, honest, MEASURED_MS / 3);
    const baselineP99 = await measureP99Ms(api, honest, MEASURED_MS);
    const before = readMegabytes(pid);
    const since = performance.now();
    held.push(...(await Promise.all(createHolderParams(Number(new URL(api).port), attacker, filler).map(startHolder))));
    const attackedP99 = await measureP99Ms(api, honest, MEASURED_MS);
    const peak = readMegabytes(pid);
    const idleWorkers = held.slice(0, 2);
    // A client that does not read does not notice the end of its connection. The holds of its account show the end.
    const areFullOnesOver = async () => (await cluster.fetchBalance(filler)).held_usd === 0;
    const areDisconnected = async () => (await countHeldConnections(idleWorkers)) === 0 && (await areFullOnesOver());
    while (!(await areDisconnected()) && performance.now() - since < DISCONNECTED_WITHIN_MS) await delay(500);
    const [remaining, areOver] = [await countHeldConnections(idleWorkers), await areFullOnesOver()];
    const isFast = attackedP99 <= Math.max(2 * baselineP99, MIN_P99_MS);
    return {
      hasPassed: isFast && remaining === 0 && areOver && peak - before <= MAX_EXTRA_MB,
      measurements: [
        `p99 of another customer ${baselineP99.toFixed(1)} ms before, ${attackedP99.toFixed(1)} ms during the attack`,
        `memory ${before} MB before, ${peak} MB during the attack`,
        `after ${Math.round((performance.now() - since) / 1_000)} s: ${remaining} idle or stalled connections remain, full streams ${areOver ? 'ended' : 'not ended'}`,
      ].join('; '),
    };
  } finally {
    await Promise.all(held.map((worker) => worker.terminate()));
    await cluster.stop();
  }
}

function createHolderParams(port: number, attacker: Customer, filler: Customer): readonly HolderParams[] {
  const formatHead = (line: string, ...headerLines: string[]) =>
    [`${line} HTTP/1.1`, 'host: a', ...headerLines, '', ''].join('\r\n');
  const formatPost = (bytes: number, { apiKey } = attacker) =>
    formatHead(
      'POST /v1/chat/completions',
      `authorization: Bearer ${apiKey}`,
      'content-type: application/json',
      `content-length: ${bytes}`,
    );
  const stalled = formatPost(BODY_BYTES) + '{'.padEnd(SENT_BYTES);
  const formatStreamRequest = (directive: string, customer = attacker) => {
    const body = JSON.stringify({
      ...CHAT,
      stream: true,
      messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
    });
    return formatPost(body.length, customer) + body;
  };
  return [
    { port, connections: IDLE, addresses: 100, sent: '', reads: true },
    { port, connections: STALLED, addresses: 4, sent: stalled, reads: true },
    {
      port,
      connections: FULL,
      addresses: 4,
      sent: formatStreamRequest('tokens=200000 chunks=20000', filler),
      reads: false,
    },
    {
      port,
      connections: UNREAD,
      addresses: 10,
      sent: formatStreamRequest('tokens=200 chunks=100 chunk_delay=2000'),
      reads: false,
    },
  ];
}

async function startHolder(workerData: HolderParams): Promise<Worker> {
  const worker = new Worker(path.join(import.meta.dirname, 'hold-connections.js'), { workerData });
  await once(worker, 'message');
  return worker;
}

async function countHeldConnections(workers: readonly Worker[]): Promise<number> {
  let sum = 0;
  for (const worker of workers) {
    const reply = once(worker, 'message');
    worker.postMessage('how many');
    sum += (await reply)[0] as number;
  }
  return sum;
}

/**
 * Returns the 99th percentile of the time for small non-streaming responses, in milliseconds. A request without a
 * response of status 200 counts as infinite.
 */
async function measureP99Ms(api: string, { apiKey }: Customer, forMs: number): Promise<number> {
  const dispatcher = new Agent({ connections: 64 });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const messages = [{ role: 'user', content: '[[sandbox tokens=5]]' }];
  const body = JSON.stringify({ ...CHAT, messages, max_tokens: 5 });
  const pendingLatencies: Promise<number>[] = [];
  const measureRequest = async () => {
    const sentAt = performance.now();
    // A failed request counts as one that takes forever.
    const response = await request(`${api}/v1/chat/completions`, { method: 'POST', headers, body, dispatcher }).catch(
      () => undefined,
    );
    await response?.body.dump().catch(() => {}); // only the status counts
    return response?.statusCode === 200 ? performance.now() - sentAt : Number.POSITIVE_INFINITY;
  };
  for (const end = performance.now() + forMs; performance.now() < end; await delay(REQUEST_INTERVAL_MS))
    pendingLatencies.push(measureRequest());
  const sorted = (await Promise.all(pendingLatencies)).toSorted((a, b) => a - b);
  await dispatcher.close();
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}

function readMegabytes(pid: number): number {
  return Math.round(readProcessUsage([pid]).megabytes);
}
