/** The gateway with durable books, a bare pass-through and a peer, in turn, in one run. */
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { type ProcessUsage, root, type Started, start, useOf, withDescendants } from '../processes.ts';
import { inParallel, type LoadFigure, oneByOne, type Target } from './load.ts';
import { startPortkey } from './portkey.ts';

const CONCURRENCIES = [1, 16, 64];
/** Each candidate serves this long before it is measured: what is compared is running code, not its compilation. */
const WARM_UP_SECONDS = 4;
/** What is asked for: sixteen tokens at once, as a stream as fast as it goes, and a millisecond apart, which no client can
 *  pass on as fewer than sixteen pieces. */
const MODES = {
  whole: '[[sandbox tokens=16]]',
  stream: '[[sandbox tokens=16]]',
  'paced stream': '[[sandbox tokens=16 chunk_delay=1]]',
} as const;

export type GatewayBenchMode = keyof typeof MODES;

interface Candidate {
  readonly name: string;
  /** Ids of its processes, by what they are. */
  readonly processes: Readonly<Record<string, () => readonly number[]>>;
  target(mode: GatewayBenchMode): Target;
}

interface Load {
  readonly mode: GatewayBenchMode;
  readonly concurrency: number;
  readonly seconds: number;
}

export interface GatewayFigure extends LoadFigure {
  readonly candidate: string;
  readonly mode: GatewayBenchMode;
  readonly concurrency: number;
  readonly cpuMsPerRequest: number;
  /** The same by process, and of the upstream. */
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
}: GatewayBench): Promise<readonly GatewayFigure[]> {
  const cluster = await ProofCluster.start(dataDir, 1);
  const others: Started[] = [];
  try {
    await cluster.ready();
    const upstream = `${cluster.sandbox}/openai/v1`;
    const candidates = [await ours(cluster)];
    for (const open of [bare, portkey]) {
      const { started, candidate } = await open(upstream);
      others.push(started);
      candidates.push(candidate);
    }
    const upstreamPid = cluster.processes.get('sandbox')?.pid as number;
    candidates.push({ name: 'upstream itself', processes: {}, target: direct(upstream) });
    const figures: GatewayFigure[] = [];
    for (const mode of Object.keys(MODES) as GatewayBenchMode[]) {
      for (const candidate of candidates) await inParallel(candidate.target(mode), 16, WARM_UP_SECONDS);
      for (const concurrency of CONCURRENCIES) {
        for (let round = 0; round < rounds; round++) {
          for (const candidate of candidates)
            figures.push(await measure(candidate, upstreamPid, { mode, concurrency, seconds }));
        }
        print(`${mode} at concurrency ${concurrency} measured`);
      }
    }
    return figures;
  } finally {
    for (const started of others) await started.stop();
    await cluster.stop();
  }
}

async function measure(
  candidate: Candidate,
  upstream: number,
  { mode, concurrency, seconds }: Load,
): Promise<GatewayFigure> {
  const target = candidate.target(mode);
  const load = (duration: number) =>
    concurrency === 1 ? oneByOne(target, duration) : inParallel(target, concurrency, duration);
  await load(1);
  const processes = { ...candidate.processes, upstream: () => [upstream] };
  const before = usesOf(processes);
  const figure = await load(seconds);
  const after = usesOf(processes);
  const requests = figure.perSecond * seconds;
  const cpu = (name: string) => (after[name]?.cpuSeconds ?? 0) - (before[name]?.cpuSeconds ?? 0);
  const names = Object.keys(candidate.processes);
  const cpuSeconds = names.reduce((sum, name) => sum + cpu(name), 0);
  return {
    ...figure,
    candidate: candidate.name,
    mode,
    concurrency,
    cpuMsPerRequest: (cpuSeconds * 1000) / requests,
    cpuMsByProcess: Object.fromEntries(Object.keys(processes).map((name) => [name, (cpu(name) * 1000) / requests])),
    cores: cpuSeconds / seconds,
    megabytes: names.reduce((sum, name) => sum + (after[name]?.megabytes ?? 0), 0),
  };
}

function usesOf(processes: Candidate['processes']): Readonly<Record<string, ProcessUsage>> {
  return Object.fromEntries(Object.entries(processes).map(([name, pids]) => [name, useOf(pids())]));
}

/** The production shape on one machine: gateway, projector and sagas as processes of their own, and PostgreSQL. */
async function ours(cluster: ProofCluster): Promise<Candidate> {
  const { apiKey } = await cluster.customer(1_000);
  const postmaster = await cluster.postgresPid();
  const pid = (name: string) => () => [cluster.processes.get(name)?.pid as number];
  return {
    name: 'countinghouse',
    processes: {
      gateway: pid('gateway 1'),
      projector: pid('projector'),
      sagas: pid('sagas'),
      postgres: () => withDescendants(postmaster),
    },
    target: (mode) => ({
      url: `${cluster.gateways[0]}/v1/chat/completions`,
      headers: headers(apiKey),
      body: body('openai/gpt-5-mini', mode),
    }),
  };
}

interface Opened {
  readonly started: Started;
  readonly candidate: Candidate;
}

async function bare(upstream: string): Promise<Opened> {
  const program = path.join(root, 'dist/tools/bench/pass-through.js');
  const started = await start([process.execPath, program], { UPSTREAM: upstream }, /listening/);
  const url = started.line.replace('listening on ', '');
  return {
    started,
    candidate: { name: 'bare pass-through', processes: { gateway: () => [started.pid] }, target: direct(`${url}/v1`) },
  };
}

async function portkey(upstream: string): Promise<Opened> {
  const started = await startPortkey();
  const more = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': upstream };
  return {
    started,
    candidate: {
      name: 'portkey',
      processes: { gateway: () => [started.pid] },
      target: direct(`${started.url}/v1`, more),
    },
  };
}

function direct(base: string, more: Record<string, string> = {}): Candidate['target'] {
  return (mode) => ({
    url: `${base}/chat/completions`,
    headers: { ...headers('sandbox'), ...more },
    body: body('gpt-5-mini', mode),
  });
}

function headers(key: string): Record<string, string> {
  return { 'content-type': 'application/json', authorization: `Bearer ${key}` };
}

function body(model: string, mode: GatewayBenchMode): string {
  const messages = [{ role: 'user', content: MODES[mode] }];
  const stream = mode !== 'whole';
  return JSON.stringify({
    model,
    messages,
    max_completion_tokens: 64,
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  });
}
