/**
 * Compares two ways to private models with a bare pass-through and the upstream alone, in one run. The gateway forwards
 * ciphertext; the proxy encrypts and decrypts. Then measures memory with 64 concurrent responses of 10 MB, whose
 * clients pause before they read.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Agent, request } from 'undici';
import { sealRequest } from '#ehbp';
import { ProofCluster } from '../cluster.ts';
import { root, type StartedProcess, startApp, startProgram } from '../processes.ts';
import { computeMedian } from './load.ts';

const WARMUP_SECONDS = 0.5;
const CREDIT_COUNT = 6;
const CREDIT_USD = 1_000;
const STREAMS = 64;
/** How long clients of the long responses pause before they read. */
const STALLED_MS = 2_000;
const SAMPLE_INTERVAL_MS = 50;
const REST_MS = 3_000;
const PAGE_BYTES = 4_096;
const LONG_BYTES = 10e6;
const JSON_TYPE = { 'content-type': 'application/json' };

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The requested outputs: a non-streaming response, a stream of small events, and a stream of 10 MB. */
const MODES = {
  'complete response': { stream: false, content: 'events=1 bytes=256' },
  '500 events': { stream: true, content: 'events=500 bytes=8' },
  '10 MB': { stream: true, content: 'events=640 bytes=16384' },
} as const;

export type PrivateMode = keyof typeof MODES;
/** The candidates of the gateway's side get encrypted requests, those of the proxy's side plain ones. */
export type Side = 'gateway' | 'proxy';

const AT_ONCE: Readonly<Record<PrivateMode, readonly number[]>> = {
  'complete response': [1, 16],
  '500 events': [1, 16],
  '10 MB': [1, 4],
};

export interface PrivateMetric {
  readonly side: Side;
  readonly mode: PrivateMode;
  readonly candidate: string;
  readonly concurrency: number;
  readonly perSecond: number;
  readonly megabytesPerSecond: number;
  readonly p50Ms: number;
  /** The median time until the first byte of the body. */
  readonly firstMs: number;
  readonly failures: number;
}

/** Resident megabytes of a process before, during (the maximum) and after the long responses. */
export interface MemoryMetric {
  readonly process: string;
  readonly before: number;
  readonly peak: number;
  readonly after: number;
}

export interface PrivateBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

interface Load {
  readonly concurrency: number;
  readonly seconds: number;
}

interface Target {
  readonly url: string;
  createRequest(mode: PrivateMode): { readonly headers: Record<string, string>; readonly body: Buffer | string };
}

export async function benchPrivate(bench: PrivateBench): Promise<{
  readonly metrics: readonly PrivateMetric[];
  readonly memory: readonly MemoryMetric[];
  /** The number of failed long responses. */
  readonly failures: number;
}> {
  const started: StartedProcess[] = [];
  const startBenchProgram = async (program: string, env: Record<string, string>) => {
    const startedProcess = await startProgram(
      [process.execPath, path.join(root, `dist/tools/bench/${program}.js`)],
      env,
      /listening/,
    );
    started.push(startedProcess);
    return { startedProcess, url: startedProcess.readyLine.replace('listening on ', '') };
  };
  const upstream = (await startBenchProgram('private-upstream', {})).url;
  const bare = (await startBenchProgram('private-pass-through', { UPSTREAM: upstream })).url;
  const cluster = await ProofCluster.start(bench.dataDir, 0);
  try {
    cluster.addSettings({ TINFOIL_BASE_URL: upstream });
    const gateway = await cluster.startRole('gateway', 'gateway 1');
    const api = cluster.gateways[0] as string;
    const { apiKey } = await createFundedCustomer(cluster);
    const startProxy = async (base: string) => {
      const env = { PPQ_API_KEY: apiKey, PPQ_API_BASE: base, ALLOW_UNATTESTED: '1', PORT: '0' };
      const proxy = await startApp('private-proxy', env);
      started.push(proxy);
      return { proxy, url: /http:\/\/127\.0\.0\.1:\d+/.exec(proxy.readyLine)?.[0] as string };
    };
    const directProxy = await startProxy(upstream);
    const gatewayProxy = await startProxy(api);
    const sealed = await createSealedTargetFactory(upstream);
    const sides: Readonly<Record<Side, Readonly<Record<string, Target>>>> = {
      gateway: {
        countinghouse: sealed(`${api}/private`, apiKey),
        'bare pass-through': sealed(bare, apiKey),
        'upstream alone': sealed(upstream, apiKey),
      },
      proxy: {
        'private proxy': createPlainTarget(directProxy.url),
        'private proxy and gateway': createPlainTarget(gatewayProxy.url),
        'bare pass-through': createPlainTarget(bare),
        'upstream alone': createPlainTarget(upstream),
      },
    };
    const metrics: PrivateMetric[] = [];
    for (const [side, candidates] of Object.entries(sides) as [Side, Record<string, Target>][])
      metrics.push(...(await measureCandidates(side, candidates, bench)));
    const processes = { gateway: gateway.pid, 'private proxy': gatewayProxy.proxy.pid };
    return { metrics, ...(await measureLongResponses(sides.proxy['private proxy and gateway'] as Target, processes)) };
  } finally {
    for (const startedProcess of started.reverse()) await startedProcess.stop();
    await cluster.stop();
  }
}

async function createFundedCustomer(cluster: ProofCluster) {
  const customer = await cluster.createCustomer(CREDIT_USD);
  for (let i = 1; i < CREDIT_COUNT; i++) await cluster.fund(customer, CREDIT_USD);
  return customer;
}

async function measureCandidates(
  side: Side,
  candidates: Readonly<Record<string, Target>>,
  { seconds, rounds, print }: PrivateBench,
): Promise<readonly PrivateMetric[]> {
  const metrics: PrivateMetric[] = [];
  for (const mode of Object.keys(MODES) as PrivateMode[]) {
    for (const target of Object.values(candidates))
      await measureLoad(target, mode, { concurrency: 4, seconds: WARMUP_SECONDS });
    for (const concurrency of AT_ONCE[mode])
      for (let round = 0; round < rounds; round++)
        for (const [candidate, target] of Object.entries(candidates))
          metrics.push({
            side,
            mode,
            candidate,
            concurrency,
            ...(await measureLoad(target, mode, { concurrency, seconds })),
          });
    print(`${mode} at the ${side} measured`);
  }
  return metrics;
}

/** Encrypts one request of each mode in advance, so that the client's encryption is not measured. */
async function createSealedTargetFactory(upstream: string): Promise<(base: string, apiKey: string) => Target> {
  const { enclaveAttestationReport } = (await (await fetch(`${upstream}/attestation`)).json()) as {
    readonly enclaveAttestationReport: { readonly body: string };
  };
  const { hpke_public_key } = JSON.parse(atob(enclaveAttestationReport.body)) as { readonly hpke_public_key: string };
  const key = Buffer.from(hpke_public_key, 'hex');
  const sealed = new Map<PrivateMode, { readonly encapsulatedKey: string; readonly body: Buffer }>();
  for (const mode of Object.keys(MODES) as PrivateMode[]) {
    const { encapsulatedKey, frames } = await sealRequest(key, Buffer.from(createChat(mode, 'gpt-oss-120b')));
    sealed.set(mode, { encapsulatedKey, body: Buffer.concat(frames) });
  }
  return (base, apiKey) => ({
    url: `${base}/v1/chat/completions`,
    createRequest(mode) {
      const { encapsulatedKey = '', body = '' } = sealed.get(mode) ?? {};
      const authorization = {
        authorization: `Bearer ${apiKey}`,
        accept: MODES[mode].stream ? 'text/event-stream' : 'application/json',
        'x-private-model': 'private/gpt-oss-120b',
      };
      return { headers: { ...JSON_TYPE, ...authorization, 'ehbp-encapsulated-key': encapsulatedKey }, body };
    },
  });
}

function createPlainTarget(base: string): Target {
  const request = (mode: PrivateMode) => ({ headers: JSON_TYPE, body: createChat(mode, 'private/gpt-oss-120b') });
  return { url: `${base}/v1/chat/completions`, createRequest: request };
}

function createChat(mode: PrivateMode, model: string): string {
  const { stream, content } = MODES[mode];
  return JSON.stringify({ model, stream, messages: [{ role: 'user', content }] });
}

/** Sends requests with a constant concurrency, and reads the responses as fast as possible. */
async function measureLoad(target: Target, mode: PrivateMode, { concurrency, seconds }: Load) {
  const dispatcher = new Agent({ connections: concurrency });
  const durationsMs: number[] = [];
  const waits: number[] = [];
  let bytes = 0;
  let failures = 0;
  const started = performance.now();
  const until = started + seconds * 1_000;
  const runWorker = async () => {
    while (performance.now() < until) {
      const sentAt = performance.now();
      const response = await request(target.url, { method: 'POST', ...target.createRequest(mode), dispatcher });
      if (response.statusCode !== 200) failures++;
      let isFirst = true;
      for await (const chunk of response.body) {
        if (isFirst) waits.push(performance.now() - sentAt);
        isFirst = false;
        bytes += (chunk as Uint8Array).length;
      }
      durationsMs.push(performance.now() - sentAt);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, runWorker));
  const lasted = (performance.now() - started) / 1_000;
  await dispatcher.close();
  return {
    perSecond: durationsMs.length / lasted,
    megabytesPerSecond: bytes / 1e6 / lasted,
    p50Ms: computeMedian(durationsMs),
    firstMs: computeMedian(waits),
    failures,
  };
}

/** Requests all long responses at once, with clients that pause, and samples the memory of the processes. */
async function measureLongResponses(target: Target, processes: Readonly<Record<string, number>>) {
  const dispatcher = new Agent({ connections: STREAMS });
  const resident = () => Object.values(processes).map(residentMegabytes);
  const before = resident();
  let peak = before;
  const sampling = setInterval(() => {
    peak = resident().map((now, i) => Math.max(now, peak[i] ?? 0));
  }, SAMPLE_INTERVAL_MS);
  let failures = 0;
  const one = async () => {
    const response = await request(target.url, { method: 'POST', ...target.createRequest('10 MB'), dispatcher });
    await sleep(STALLED_MS);
    let bytes = 0;
    for await (const chunk of response.body) bytes += (chunk as Uint8Array).length;
    if (response.statusCode !== 200 || bytes < LONG_BYTES) failures++;
  };
  await Promise.all(Array.from({ length: STREAMS }, one));
  await sleep(REST_MS);
  clearInterval(sampling);
  await dispatcher.close();
  const after = resident();
  const memory = Object.keys(processes).map((process, i) => ({
    process,
    before: before[i] as number,
    peak: peak[i] as number,
    after: after[i] as number,
  }));
  return { memory, failures };
}

function residentMegabytes(pid: number): number {
  const [, pages = '0'] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ');
  return (Number(pages) * PAGE_BYTES) / 1e6;
}
