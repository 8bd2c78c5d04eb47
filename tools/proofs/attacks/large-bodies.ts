/**
 * The bodies that take a gateway longest, on every route that accepts one. Measures how long each holds the event loop,
 * and the effect of ten connections that send them on the chats of another customer and on health checks. A gateway
 * that had lost its presence in the database would reject these chats.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Agent, request } from 'undici';
import { type Customer, ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';
import { BodyStatuses } from './body-statuses.ts';
import type { LoopTimes } from './loop-probe.ts';
import type { SenderParams, SentBodies } from './send-bodies.ts';
import { createProviderSettings, createWorstBodies, type WorstBody } from './worst-bodies.ts';

const CONNECTIONS = 10;
const MEASURED_MS = 30_000;
const REQUEST_INTERVAL_MS = 25;
const HEALTH_INTERVAL_MS = 100;
const MAX_HEALTH_MS = 1_000;
const MAX_P99_RATIO = 3;
/** Maximum time of a turn of the event loop beyond parsing. */
const MAX_ITERATION_MS = 20;
/** A body is sent so often while it exceeds the maximum: at times, garbage of others is collected in its turns. */
const MAX_REPEATS = 4;
const SIGNAL_MS = 60;
/** An account rests after a body that takes long to parse, so single bodies are sent by several accounts in turn. */
const SENDERS = 24;
/** Small buffers are parts of a pool, which cannot be moved to another thread. */
const MIN_MOVED_BYTES = 1024 * 1024;
/** The other customer's model. Its provider is simulated; those of the attacker's bodies are not. */
const OTHER_MODEL = 'openai/gpt-oss-120b';
const OTHER_PROVIDER = 'groq';

export const largeBodies: Attack = {
  name: 'large-bodies',
  description: `${CONNECTIONS} connections that send the worst bodies to every route`,
  run: runAttack,
};

async function runAttack(directory: string): Promise<Finding> {
  const provider = new Worker(path.join(import.meta.dirname, 'rejecting-provider.js'));
  const [providerPort] = await once(provider, 'message');
  const file = path.join(directory, 'loop.json');
  const cluster = await ProofCluster.start(path.join(directory, 'data'), 1, {
    // The bodies of the attacker go to a provider of their own, because the simulated ones serve the other customer.
    ...createProviderSettings(`http://127.0.0.1:${providerPort}`),
    NODE_OPTIONS: `--import ${path.join(import.meta.dirname, 'loop-probe.js')}`,
    LOOP_PROBE_FILE: file,
  });
  try {
    const [attacker, other] = [await cluster.createCustomer(500), await cluster.createCustomer(50)];
    const bodies = createWorstBodies();
    const senders = await Promise.all(Array.from({ length: SENDERS }, () => cluster.createCustomer(500)));
    const [times, statuses] = await measureIterations(cluster, senders, bodies, file);
    const idle = await measureOther(cluster, other);
    const [busy, sent] = await runWithSender(cluster, attacker, bodies, () => measureOther(cluster, other));
    const isFast = busy.p99 <= idle.p99 * MAX_P99_RATIO;
    const isHealthy = busy.unhealthy === 0 && busy.maxHealthMs < MAX_HEALTH_MS;
    const slowest = times.toSorted((a, b) => b.other - a.other);
    const [slowestToParse] = times.toSorted((a, b) => b.parsing - a.parsing);
    const tooSlow = slowest.filter(({ other }) => other > MAX_ITERATION_MS);
    const median = slowest[Math.floor(slowest.length / 2)]?.other ?? 0;
    return {
      hasPassed: statuses.invalidBodies.length === 0 && isFast && isHealthy && tooSlow.length === 0,
      measurements: [
        `${times.length} bodies: turns beyond parsing at most ${slowest[0]?.other.toFixed(0)} ms (${slowest[0]?.name}), median ${median.toFixed(0)} ms`,
        `parsing at most ${slowestToParse?.parsing.toFixed(0)} ms (${slowestToParse?.name})`,
        `chats of another customer: p50 ${idle.p50.toFixed(1)} and p99 ${idle.p99.toFixed(1)} ms before, ${busy.p50.toFixed(1)} and ${busy.p99.toFixed(1)} ms during the attack`,
        `health checks at most ${busy.maxHealthMs.toFixed(0)} ms, ${busy.unhealthy} of ${busy.checks} not ready`,
        `${sent.megabytes} MB sent, by status ${JSON.stringify(sent.byStatus)}`,
        `statuses of single bodies: ${statuses}`,
        ...statuses.invalidBodies.map((body) => `invalid body: ${body}`),
        ...tooSlow.map(({ name, other }) => `too slow: ${name}, ${other.toFixed(0)} ms`),
      ].join('; '),
    };
  } finally {
    await cluster.stop();
    await provider.terminate();
  }
}

/**
 * Sends each body, and measures the turns of the gateway's event loop. The shortest of the repetitions counts: what a
 * body does itself, it does each time, unlike what is compiled and loaded when it is used first.
 */
async function measureIterations(
  cluster: ProofCluster,
  senders: readonly Customer[],
  bodies: readonly WorstBody[],
  file: string,
) {
  const [api = ''] = cluster.gateways;
  const pid = cluster.processes.get('gateway 1')?.pid ?? 0;
  const statuses = new BodyStatuses();
  let sent = 0;
  const send = async (worst: WorstBody) => {
    const { name, path: route, contentType, headers, body } = worst;
    const isStored = name.includes('stored'); // these belong to one account: one continues another
    const sender = senders[isStored ? 0 : sent++ % SENDERS] as Customer;
    const allHeaders = { ...createHeaders(sender), 'content-type': contentType, ...headers };
    const response = await request(api + route, { method: 'POST', headers: allHeaders, body });
    statuses.add(worst, response.statusCode, await response.body.text());
  };
  const measure = async (body: WorstBody): Promise<LoopTimes> => {
    process.kill(pid, 'SIGUSR2');
    await delay(SIGNAL_MS);
    await send(body);
    process.kill(pid, 'SIGUSR2');
    await delay(SIGNAL_MS);
    return JSON.parse(await readFile(file, 'utf8')) as LoopTimes;
  };
  const times: (LoopTimes & { readonly name: string })[] = [];
  for (const body of bodies) {
    let shortest = await measure(body);
    for (let i = 1; i < MAX_REPEATS && shortest.other > MAX_ITERATION_MS; i++) {
      const repeated = await measure(body);
      if (repeated.other < shortest.other) shortest = repeated;
    }
    times.push({ name: body.name, ...shortest });
  }
  return [times, statuses] as const;
}

const createHeaders = ({ apiKey, creditId }: Customer) => ({
  authorization: `Bearer ${apiKey}`,
  'x-credit-id': creditId,
});

/** Runs `work` while another thread sends bodies. Moves the memory of the bodies there: it is several GB. */
async function runWithSender<T>(
  cluster: ProofCluster,
  attacker: Customer,
  bodies: readonly WorstBody[],
  work: () => Promise<T>,
): Promise<readonly [T, SentBodies]> {
  const [api = ''] = cluster.gateways;
  const headers = createHeaders(attacker);
  const workerData = { api, headers, connections: CONNECTIONS, bodies } satisfies SenderParams;
  const large = bodies.flatMap(({ body }) => (body.length >= MIN_MOVED_BYTES ? [body.buffer as ArrayBuffer] : []));
  const file = path.join(import.meta.dirname, 'send-bodies.js');
  const worker = new Worker(file, { workerData, transferList: [...new Set(large)] });
  try {
    await once(worker, 'message');
    worker.postMessage('start');
    const result = await work();
    const sent = once(worker, 'message');
    worker.postMessage('stop');
    return [result, (await sent)[0] as SentBodies];
  } finally {
    await worker.terminate();
  }
}

/** Measures chats of a customer and health checks. A chat without a response of status 200 counts as infinite. */
async function measureOther(cluster: ProofCluster, { apiKey }: Customer) {
  const [api = ''] = cluster.gateways;
  const dispatcher = new Agent({ connections: 64 });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const messages = [{ role: 'user', content: '[[sandbox tokens=5]]' }];
  const chat = {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: OTHER_MODEL, messages, max_tokens: 5, provider: { only: [OTHER_PROVIDER] } }),
  };
  const measure = async (url: string, options: object) => {
    const sentAt = performance.now();
    const response = await request(url, { ...options, dispatcher }).catch(() => undefined); // counted as failed
    await response?.body.dump().catch(() => {}); // only the status counts
    return { ok: response?.statusCode === 200, ms: performance.now() - sentAt };
  };
  const [chats, checks]: [Promise<{ ok: boolean; ms: number }>[], Promise<{ ok: boolean; ms: number }>[]] = [[], []];
  const end = performance.now() + MEASURED_MS;
  for (let i = 0; performance.now() < end; i++) {
    chats.push(measure(`${api}/v1/chat/completions`, chat));
    if (i % Math.ceil(HEALTH_INTERVAL_MS / REQUEST_INTERVAL_MS) === 0) checks.push(measure(`${api}/health/ready`, {}));
    await delay(REQUEST_INTERVAL_MS);
  }
  const sorted = (await Promise.all(chats))
    .map(({ ok, ms }) => (ok ? ms : Number.POSITIVE_INFINITY))
    .toSorted((a, b) => a - b);
  const health = await Promise.all(checks);
  await dispatcher.close();
  return {
    p50: sorted[Math.floor(sorted.length / 2)] ?? 0,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    checks: health.length,
    unhealthy: health.filter(({ ok }) => !ok).length,
    maxHealthMs: Math.max(...health.map(({ ms }) => ms)),
  };
}
