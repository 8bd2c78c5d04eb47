/** Measures pay per request: issued challenges, verified proofs, and replayed responses. */
import { Agent, request } from 'undici';
import { ProofCluster } from '../cluster.ts';
import { payForCall } from '../proofs/challenges/payer.ts';
import type { LoadMetric } from './load.ts';

const AT_ONCE = 64;
const WARMUP_SECONDS = 2;
/** One IP address requests all challenges, and more per minute than all callers together may get by default. */
const SETTINGS = { CHALLENGES_PER_MINUTE: '1000000', CHALLENGES_PER_MINUTE_IN_ALL: '1000000' };
const LOOKUP = { path: '/v1/data/api/web/contents', json: { urls: ['https://example.com/ledgers'], text: true } };

export interface ChallengeMetric extends LoadMetric {
  readonly what: string;
}

export interface ChallengeBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

interface LoadRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly status: number;
}

export async function benchChallenges(bench: ChallengeBench): Promise<readonly ChallengeMetric[]> {
  const { seconds, rounds, dataDir, print } = bench;
  const cluster = await ProofCluster.start(dataDir, 1, SETTINGS);
  try {
    const [api = ''] = cluster.gateways;
    const { credential: authorization } = await payForCall(api, cluster.sandbox, { ...LOOKUP, method: 'POST' });
    const json = { 'content-type': 'application/json' };
    const lookup = { url: `${api}${LOOKUP.path}`, method: 'POST', body: JSON.stringify(LOOKUP.json) } as const;
    const all: Readonly<Record<string, LoadRequest>> = {
      'challenges issued': { ...lookup, headers: json, status: 402 },
      'responses replayed for a proof': { ...lookup, headers: { ...json, authorization }, status: 200 },
      'proofs verified': { url: `${api}/v1/payments/charge`, method: 'GET', headers: { authorization }, status: 200 },
    };
    const metrics: ChallengeMetric[] = [];
    for (const loadRequest of Object.values(all)) await measureManyAtOnce(loadRequest, WARMUP_SECONDS);
    for (let round = 0; round < rounds; round++)
      for (const [what, loadRequest] of Object.entries(all))
        metrics.push({ what, ...(await measureManyAtOnce(loadRequest, seconds)) });
    print('challenges measured');
    return metrics;
  } finally {
    await cluster.stop();
  }
}

async function measureManyAtOnce({ url, status, ...options }: LoadRequest, seconds: number): Promise<LoadMetric> {
  const dispatcher = new Agent({ connections: AT_ONCE });
  const latencies: number[] = [];
  let failures = 0;
  const started = performance.now();
  const runWorker = async () => {
    while (performance.now() - started < seconds * 1_000) {
      const sentAt = performance.now();
      const response = await request(url, { ...options, dispatcher });
      await response.body.arrayBuffer();
      latencies.push(performance.now() - sentAt);
      if (response.statusCode !== status) failures++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runWorker));
  const perSecond = latencies.length / ((performance.now() - started) / 1_000);
  latencies.sort((a, b) => a - b);
  const getPercentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
  await dispatcher.close();
  return { perSecond, p50Ms: getPercentile(0.5), p99Ms: getPercentile(0.99), failures };
}
