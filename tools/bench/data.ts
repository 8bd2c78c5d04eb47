/** Compares data lookups through the gateway with a bare pass-through and the upstream alone, in one run. */
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { root, startProgram } from '../processes.ts';
import { type LoadMetric, measureInParallel, measureSequentially, type Target } from './load.ts';

const CONCURRENCIES = [1, 64];
const WARMUP_SECONDS = 4;

export interface DataMetric extends LoadMetric {
  readonly candidate: string;
  readonly concurrency: number;
}

export interface DataBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

export async function benchData({ seconds, rounds, dataDir, print }: DataBench): Promise<readonly DataMetric[]> {
  const cluster = await ProofCluster.start(dataDir, 1);
  const upstream = `${cluster.sandbox}/exa`;
  const program = path.join(root, 'dist/tools/bench/pass-through.js');
  const bare = await startProgram([process.execPath, program], { UPSTREAM: upstream }, /listening/);
  try {
    const { apiKey } = await cluster.createCustomer(1_000);
    const candidates: Readonly<Record<string, Target>> = {
      countinghouse: createTarget(`${cluster.gateways[0]}/v1/data/api/web`, apiKey),
      'bare pass-through': createTarget(`${bare.readyLine.replace('listening on ', '')}/v1`, 'sandbox'),
      'upstream alone': createTarget(upstream, 'sandbox'),
    };
    const metrics: DataMetric[] = [];
    for (const candidateTarget of Object.values(candidates))
      await measureInParallel(candidateTarget, 64, WARMUP_SECONDS);
    for (const concurrency of CONCURRENCIES) {
      for (let round = 0; round < rounds; round++) {
        for (const [candidate, candidateTarget] of Object.entries(candidates)) {
          const load =
            concurrency === 1
              ? measureSequentially(candidateTarget, seconds)
              : measureInParallel(candidateTarget, concurrency, seconds);
          metrics.push({ ...(await load), candidate, concurrency });
        }
      }
      print(`lookups at concurrency ${concurrency} measured`);
    }
    return metrics;
  } finally {
    await bare.stop();
    await cluster.stop();
  }
}

function createTarget(base: string, key: string): Target {
  return {
    url: `${base}/contents`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ urls: ['https://example.com/lighthouses'], text: true }),
  };
}
