/**
 * Compares the gateway, which has a durable ledger, with a bare pass-through, another gateway and the upstream alone.
 * One run measures all four in turns.
 */
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import {
  listProcessTree,
  type ProcessUsage,
  readProcessUsage,
  root,
  type StartedProcess,
  startProgram,
} from '../processes.ts';
import { type LoadMetric, measureInParallel, measureSequentially, type Target } from './load.ts';
import { startPortkey } from './portkey.ts';

const CONCURRENCIES = [1, 16, 64];
/** How long each candidate gets load before the measurement, so that V8 has compiled its code. */
const WARMUP_SECONDS = 4;
/**
 * Sixteen tokens: in a buffered response, as a stream without delays, and as a stream with a millisecond between
 * tokens. A gateway that does not buffer forwards the last stream token by token.
 */
const MODES = {
  buffered: '[[sandbox tokens=16]]',
  stream: '[[sandbox tokens=16]]',
  'paced stream': '[[sandbox tokens=16 chunk_delay=1]]',
} as const;

export type GatewayBenchMode = keyof typeof MODES;

interface Candidate {
  readonly name: string;
  /** Functions that return the process ids of the candidate, by the name of the process. */
  readonly processes: Readonly<Record<string, () => readonly number[]>>;
  createTarget(mode: GatewayBenchMode): Target;
}

interface Load {
  readonly mode: GatewayBenchMode;
  readonly concurrency: number;
  readonly seconds: number;
}

export interface GatewayMetric extends LoadMetric {
  readonly candidate: string;
  readonly mode: GatewayBenchMode;
  readonly concurrency: number;
  readonly cpuMsPerRequest: number;
  /** Milliseconds of CPU time per request by process, including the upstream. */
  readonly cpuMsByProcess: Readonly<Record<string, number>>;
  readonly cores: number;
  readonly megabytes: number;
}

export interface GatewayBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

export async function benchGateways({
  seconds,
  rounds,
  dataDir,
  print,
}: GatewayBench): Promise<readonly GatewayMetric[]> {
  const cluster = await ProofCluster.start(dataDir, 1);
  const peerProcesses: StartedProcess[] = [];
  try {
    await cluster.waitUntilReady();
    const upstream = `${cluster.sandbox}/openai/v1`;
    const candidates = [await createGatewayCandidate(cluster)];
    for (const open of [startBareCandidate, startPortkeyCandidate]) {
      const { started, candidate } = await open(upstream);
      peerProcesses.push(started);
      candidates.push(candidate);
    }
    const upstreamPid = cluster.processes.get('sandbox')?.pid as number;
    candidates.push({ name: 'upstream alone', processes: {}, createTarget: createDirectTarget(upstream) });
    const metrics: GatewayMetric[] = [];
    for (const mode of Object.keys(MODES) as GatewayBenchMode[]) {
      for (const candidate of candidates) await measureInParallel(candidate.createTarget(mode), 16, WARMUP_SECONDS);
      for (const concurrency of CONCURRENCIES) {
        for (let round = 0; round < rounds; round++) {
          for (const candidate of candidates)
            metrics.push(await measure(candidate, upstreamPid, { mode, concurrency, seconds }));
        }
        print(`${mode} at concurrency ${concurrency} measured`);
      }
    }
    return metrics;
  } finally {
    for (const started of peerProcesses) await started.stop();
    await cluster.stop();
  }
}

async function measure(
  candidate: Candidate,
  upstream: number,
  { mode, concurrency, seconds }: Load,
): Promise<GatewayMetric> {
  const target = candidate.createTarget(mode);
  const runLoad = (duration: number) =>
    concurrency === 1 ? measureSequentially(target, duration) : measureInParallel(target, concurrency, duration);
  await runLoad(1);
  const processes = { ...candidate.processes, upstream: () => [upstream] };
  const before = readUsageByProcess(processes);
  const loadMetric = await runLoad(seconds);
  const after = readUsageByProcess(processes);
  const requests = loadMetric.perSecond * seconds;
  const getCpuSeconds = (name: string) => (after[name]?.cpuSeconds ?? 0) - (before[name]?.cpuSeconds ?? 0);
  const names = Object.keys(candidate.processes);
  const cpuSeconds = names.reduce((sum, name) => sum + getCpuSeconds(name), 0);
  return {
    ...loadMetric,
    candidate: candidate.name,
    mode,
    concurrency,
    cpuMsPerRequest: (cpuSeconds * 1000) / requests,
    cpuMsByProcess: Object.fromEntries(
      Object.keys(processes).map((name) => [name, (getCpuSeconds(name) * 1000) / requests]),
    ),
    cores: cpuSeconds / seconds,
    megabytes: names.reduce((sum, name) => sum + (after[name]?.megabytes ?? 0), 0),
  };
}

function readUsageByProcess(processes: Candidate['processes']): Readonly<Record<string, ProcessUsage>> {
  return Object.fromEntries(Object.entries(processes).map(([name, pids]) => [name, readProcessUsage(pids())]));
}

/** A production installation on one host: gateway, projector and sagas as separate processes, and PostgreSQL. */
async function createGatewayCandidate(cluster: ProofCluster): Promise<Candidate> {
  const { apiKey } = await cluster.createCustomer(1_000);
  const postmaster = await cluster.readPostgresPid();
  const createPidReader = (name: string) => () => [cluster.processes.get(name)?.pid as number];
  return {
    name: 'countinghouse',
    processes: {
      gateway: createPidReader('gateway 1'),
      projector: createPidReader('projector'),
      sagas: createPidReader('sagas'),
      postgres: () => listProcessTree(postmaster),
    },
    createTarget: (mode) => ({
      url: `${cluster.gateways[0]}/v1/chat/completions`,
      headers: createHeaders(apiKey),
      body: createBody('openai/gpt-5-mini', mode),
    }),
  };
}

interface StartedCandidate {
  readonly started: StartedProcess;
  readonly candidate: Candidate;
}

async function startBareCandidate(upstream: string): Promise<StartedCandidate> {
  const program = path.join(root, 'dist/tools/bench/pass-through.js');
  const started = await startProgram([process.execPath, program], { UPSTREAM: upstream }, /listening/);
  const url = started.readyLine.replace('listening on ', '');
  return {
    started,
    candidate: {
      name: 'bare pass-through',
      processes: { gateway: () => [started.pid] },
      createTarget: createDirectTarget(`${url}/v1`),
    },
  };
}

async function startPortkeyCandidate(upstream: string): Promise<StartedCandidate> {
  const started = await startPortkey();
  const portkeyHeaders = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': upstream };
  return {
    started,
    candidate: {
      name: 'portkey',
      processes: { gateway: () => [started.pid] },
      createTarget: createDirectTarget(`${started.url}/v1`, portkeyHeaders),
    },
  };
}

function createDirectTarget(base: string, extraHeaders: Record<string, string> = {}): Candidate['createTarget'] {
  return (mode) => ({
    url: `${base}/chat/completions`,
    headers: { ...createHeaders('sandbox'), ...extraHeaders },
    body: createBody('gpt-5-mini', mode),
  });
}

function createHeaders(key: string): Record<string, string> {
  return { 'content-type': 'application/json', authorization: `Bearer ${key}` };
}

function createBody(model: string, mode: GatewayBenchMode): string {
  const messages = [{ role: 'user', content: MODES[mode] }];
  const stream = mode !== 'buffered';
  return JSON.stringify({
    model,
    messages,
    max_completion_tokens: 64,
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  });
}
