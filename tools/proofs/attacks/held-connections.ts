/** Silent connections, uploads that stand still and answers that nobody reads, many at once: what others and the memory see of them. */
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Agent, request } from 'undici';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { useOf } from '../../processes.ts';
import type { Attack, Finding } from './attack.ts';
import type { Held } from './hold-connections.ts';

const SILENT = 8_000;
const STALLED = 40;
const UNREAD = 1_000;
/** Of these the answers are longer than what the sockets between take, some 4 MB: they must be ended. */
const FULL = 8;
const BODY_BYTES = 20 * 1024 * 1024;
const SENT_BYTES = 1024 * 1024;
const CHAT = { model: 'openai/gpt-5-mini' };
/** Requests of others, at an even pace: how long they take is measured, not how many there can be. */
const EVERY_MS = 20;
const MEASURED_MS = 15_000;
/** Silent connections, uploads that stand still and full answers must be gone by then: of the last nothing is taken for a minute. */
const GONE_WITHIN_MS = 130_000;
const MOST_MORE_MB = 400;
/** Below which twice the usual time is no sign of anything. */
const FLOOR_MS = 25;

export const heldConnections: Attack = {
  name: 'held-connections',
  what: `${SILENT} silent connections, ${STALLED} uploads that stand still, ${UNREAD} streams that nobody reads, ${FULL} more that fill their sockets`,
  run: attacked,
};

async function attacked(directory: string): Promise<Finding> {
  const cluster = await ProofCluster.start(directory, 1, { MAX_CONNECTIONS: '20000' });
  const held: Worker[] = [];
  try {
    const [api = ''] = cluster.gateways;
    const pid = cluster.processes.get('gateway 1')?.pid ?? 0;
    const honest = await cluster.customer(5);
    const [attacker, filler] = [await cluster.customer(100), await cluster.customer(100)];
    await latencies(api, honest, MEASURED_MS / 3);
    const usual = await latencies(api, honest, MEASURED_MS);
    const before = megabytesOf(pid);
    const since = performance.now();
    held.push(...(await Promise.all(holds(Number(new URL(api).port), attacker, filler).map(holding))));
    const attackedP99 = await latencies(api, honest, MEASURED_MS);
    const peak = megabytesOf(pid);
    const patient = held.slice(0, 2);
    // Whoever reads nothing does not see the end either: it shows in what is held for him.
    const areFullOnesOver = async () => (await cluster.balance(filler)).held_usd === 0;
    const areGone = async () => (await heldBy(patient)) === 0 && (await areFullOnesOver());
    while (!(await areGone()) && performance.now() - since < GONE_WITHIN_MS) await delay(500);
    const [left, areOver] = [await heldBy(patient), await areFullOnesOver()];
    const isQuick = attackedP99 <= Math.max(2 * usual, FLOOR_MS);
    return {
      held: isQuick && left === 0 && areOver && peak - before <= MOST_MORE_MB,
      measured: [
        `p99 of others ${usual.toFixed(1)} ms, attacked ${attackedP99.toFixed(1)} ms`,
        `memory ${before} MB, attacked ${peak} MB`,
        `left after ${Math.round((performance.now() - since) / 1_000)} s: ${left} silent or still, full streams ${areOver ? 'ended' : 'not ended'}`,
      ].join('; '),
    };
  } finally {
    await Promise.all(held.map((worker) => worker.terminate()));
    await cluster.stop();
  }
}

function holds(port: number, attacker: Customer, filler: Customer): readonly Held[] {
  const head = (line: string, ...more: string[]) => [`${line} HTTP/1.1`, 'host: a', ...more, '', ''].join('\r\n');
  const post = (bytes: number, { apiKey } = attacker) =>
    head(
      'POST /v1/chat/completions',
      ...[`authorization: Bearer ${apiKey}`, 'content-type: application/json', `content-length: ${bytes}`],
    );
  const stalled = post(BODY_BYTES) + '{'.padEnd(SENT_BYTES);
  const stream = (said: string, customer = attacker) => {
    const body = JSON.stringify({
      ...CHAT,
      stream: true,
      messages: [{ role: 'user', content: `[[sandbox ${said}]]` }],
    });
    return post(body.length, customer) + body;
  };
  return [
    { port, connections: SILENT, addresses: 100, sent: '', reads: true },
    { port, connections: STALLED, addresses: 4, sent: stalled, reads: true },
    { port, connections: FULL, addresses: 4, sent: stream('tokens=200000 chunks=20000', filler), reads: false },
    { port, connections: UNREAD, addresses: 10, sent: stream('tokens=200 chunks=100 chunk_delay=2000'), reads: false },
  ];
}

async function holding(workerData: Held): Promise<Worker> {
  const worker = new Worker(path.join(import.meta.dirname, 'hold-connections.js'), { workerData });
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
  const body = JSON.stringify({ ...CHAT, messages, max_tokens: 5 });
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
