/** Silent connections, uploads that stand still and answers that nobody reads, many at once: what others and the memory see of them. */
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Agent, request } from 'undici';
import { Cluster, type Customer } from '../../cluster.ts';
import { useOf } from '../../processes.ts';
import type { Attack, Finding } from './attack.ts';
import type { Held } from './holder.ts';

const SILENT = 8_000;
const STALLED = 40;
const UNREAD = 1_000;
const BODY_BYTES = 20 * 1024 * 1024;
const SENT_BYTES = 1024 * 1024;
/** Requests of others, at an even pace: how long they take is measured, not how many there can be. */
const EVERY_MS = 20;
const MEASURED_MS = 15_000;
/** Silent connections and uploads that stand still must be gone by then. */
const GONE_WITHIN_MS = 45_000;
const MOST_MORE_MB = 400;
/** Below which twice the usual time is no sign of anything. */
const FLOOR_MS = 25;

export const heldConnections: Attack = {
  name: 'held-connections',
  what: `${SILENT} silent connections, ${STALLED} uploads that stand still, ${UNREAD} answers that nobody reads`,
  run: attacked,
};

async function attacked(directory: string): Promise<Finding> {
  const cluster = await Cluster.start(directory, 1, { MAX_CONNECTIONS: '20000' });
  const held: Worker[] = [];
  try {
    const [api = ''] = cluster.gateways;
    const pid = cluster.processes.get('gateway 1')?.pid ?? 0;
    const honest = await cluster.customer(5);
    const attacker = await cluster.customer(5);
    await latencies(api, honest, MEASURED_MS / 3);
    const usual = await latencies(api, honest, MEASURED_MS);
    const before = megabytesOf(pid);
    const during = latencies(api, honest, MEASURED_MS);
    held.push(...(await Promise.all(holds(Number(new URL(api).port), attacker).map(holding))));
    const attackedP99 = await during;
    const peak = megabytesOf(pid);
    const since = performance.now();
    const patient = held.slice(0, 2);
    while ((await heldBy(patient)) > 0 && performance.now() - since < GONE_WITHIN_MS) await delay(500);
    const [left, unread] = [await heldBy(patient), await heldBy(held.slice(2))];
    const isQuick = attackedP99 <= Math.max(2 * usual, FLOOR_MS);
    return {
      held: isQuick && left === 0 && peak - before <= MOST_MORE_MB,
      measured: [
        `p99 of others ${usual.toFixed(1)} ms, attacked ${attackedP99.toFixed(1)} ms`,
        `memory ${before} MB, attacked ${peak} MB`,
        `left after ${Math.round((performance.now() - since) / 1_000)} s: ${left} silent or still, ${unread} unread`,
      ].join('; '),
    };
  } finally {
    await Promise.all(held.map((worker) => worker.terminate()));
    await cluster.stop();
  }
}

function holds(port: number, { apiKey }: Customer): readonly Held[] {
  const head = (line: string, ...more: string[]) => [`${line} HTTP/1.1`, 'host: a', ...more, '', ''].join('\r\n');
  const upload = [`authorization: Bearer ${apiKey}`, 'content-type: application/json', `content-length: ${BODY_BYTES}`];
  const stalled = head('POST /v1/chat/completions', ...upload) + '{'.padEnd(SENT_BYTES);
  return [
    { port, connections: SILENT, addresses: 100, sent: '', reads: true },
    { port, connections: STALLED, addresses: 4, sent: stalled, reads: true },
    { port, connections: UNREAD, addresses: 10, sent: head('GET /openapi.json'), reads: false },
  ];
}

async function holding(workerData: Held): Promise<Worker> {
  const worker = new Worker(path.join(import.meta.dirname, 'holder.js'), { workerData });
  await once(worker, 'message');
  return worker;
}

async function heldBy(workers: readonly Worker[]): Promise<number> {
  let sum = 0;
  for (const worker of workers) {
    const answered = once(worker, 'message');
    worker.postMessage('how many');
    sum += (await answered)[0] as number;
  }
  return sum;
}

/** The 99th percentile of whole small answers, in milliseconds. */
async function latencies(api: string, { apiKey }: Customer, forMs: number): Promise<number> {
  const dispatcher = new Agent({ connections: 64 });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const messages = [{ role: 'user', content: '[[sandbox tokens=5]]' }];
  const body = JSON.stringify({ model: 'openai/gpt-5-mini', messages, max_tokens: 5 });
  const taken: Promise<number>[] = [];
  const ask = async () => {
    const began = performance.now();
    const answer = await request(`${api}/v1/chat/completions`, { method: 'POST', headers, body, dispatcher }).catch(
      () => undefined,
    );
    await answer?.body.dump().catch(() => {});
    return answer?.statusCode === 200 ? performance.now() - began : Number.POSITIVE_INFINITY;
  };
  for (const end = performance.now() + forMs; performance.now() < end; await delay(EVERY_MS)) taken.push(ask());
  const sorted = (await Promise.all(taken)).toSorted((a, b) => a - b);
  await dispatcher.close();
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}

function megabytesOf(pid: number): number {
  return Math.round(useOf([pid]).megabytes);
}
