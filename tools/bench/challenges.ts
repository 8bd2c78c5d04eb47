/** Payments for single requests: challenges that are issued, proofs that are verified, and answers that are shown again. */
import { Agent, request } from 'undici';
import { ProofCluster } from '../cluster.ts';
import { paid } from '../proofs/challenges/payer.ts';
import type { LoadFigure } from './load.ts';

const AT_ONCE = 64;
const WARM_UP_SECONDS = 2;
/** One test address asks for more than a customer may. */
const SETTINGS = { CHALLENGES_PER_MINUTE: '1000000', CHALLENGES_PER_MINUTE_IN_ALL: '1000000' };
const LOOKUP = { path: '/v1/data/api/web/contents', json: { urls: ['https://example.com/ledgers'], text: true } };

export interface ChallengeFigure extends LoadFigure {
  readonly what: string;
}

export interface ChallengeBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

interface Asked {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly status: number;
}

export async function benchChallenges(bench: ChallengeBench): Promise<readonly ChallengeFigure[]> {
  const { seconds, rounds, dataDir, print } = bench;
  const cluster = await ProofCluster.start(dataDir, 1, SETTINGS);
  try {
    const [api = ''] = cluster.gateways;
    const { credential: authorization } = await paid(api, cluster.sandbox, { ...LOOKUP, method: 'POST' });
    const json = { 'content-type': 'application/json' };
    const lookup = { url: `${api}${LOOKUP.path}`, method: 'POST', body: JSON.stringify(LOOKUP.json) } as const;
    const all: Readonly<Record<string, Asked>> = {
      'challenges issued': { ...lookup, headers: json, status: 402 },
      'answers shown again to a proof': { ...lookup, headers: { ...json, authorization }, status: 200 },
      'proofs verified': { url: `${api}/v1/payments/charge`, method: 'GET', headers: { authorization }, status: 200 },
    };
    const figures: ChallengeFigure[] = [];
    for (const asked of Object.values(all)) await manyAtOnce(asked, WARM_UP_SECONDS);
    for (let round = 0; round < rounds; round++)
      for (const [what, asked] of Object.entries(all)) figures.push({ what, ...(await manyAtOnce(asked, seconds)) });
    print('challenges measured');
    return figures;
  } finally {
    await cluster.stop();
  }
}

async function manyAtOnce({ url, status, ...asked }: Asked, seconds: number): Promise<LoadFigure> {
  const dispatcher = new Agent({ connections: AT_ONCE });
  const latencies: number[] = [];
  let failures = 0;
  const started = performance.now();
  const one = async () => {
    while (performance.now() - started < seconds * 1_000) {
      const began = performance.now();
      const answer = await request(url, { ...asked, dispatcher });
      await answer.body.arrayBuffer();
      latencies.push(performance.now() - began);
      if (answer.statusCode !== status) failures++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  const perSecond = latencies.length / ((performance.now() - started) / 1_000);
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
  await dispatcher.close();
  return { perSecond, p50Ms: at(0.5), p99Ms: at(0.99), failures };
}
