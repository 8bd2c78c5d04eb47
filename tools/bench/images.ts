/**
 * Compares images through the gateway with a bare pass-through that uses the same kind of file store, and with the
 * upstream alone, in one run.
 */
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { root, startProgram } from '../processes.ts';
import { type LoadMetric, measureInParallel, measureSequentially, type Target } from './load.ts';

const CONCURRENCIES = [1, 16];
const WARMUP_SECONDS = 4;

export interface ImageMetric extends LoadMetric {
  readonly candidate: string;
  readonly concurrency: number;
}

export interface ImageBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

export async function benchImages({ seconds, rounds, dataDir, print }: ImageBench): Promise<readonly ImageMetric[]> {
  const cluster = await ProofCluster.start(dataDir, 1);
  const upstream = `${cluster.sandbox}/openai/v1`;
  const program = path.join(root, 'dist/tools/bench/images-pass-through.js');
  const env = { UPSTREAM: upstream, FILES_DIR: path.join(dataDir, 'passed') };
  const bare = await startProgram([process.execPath, program], env, /listening/);
  try {
    const { apiKey } = await cluster.createCustomer(1_000);
    const candidates: Readonly<Record<string, Target>> = {
      countinghouse: createTarget(`${cluster.gateways[0]}/v1`, apiKey, { model: 'openai/gpt-image-1-mini' }),
      'bare pass-through': createTarget(`${bare.readyLine.replace('listening on ', '')}/v1`, 'sandbox'),
      'upstream alone': createTarget(upstream, 'sandbox'),
    };
    const metrics: ImageMetric[] = [];
    for (const candidateTarget of Object.values(candidates))
      await measureInParallel(candidateTarget, 16, WARMUP_SECONDS);
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
      print(`images at concurrency ${concurrency} measured`);
    }
    return metrics;
  } finally {
    await bare.stop();
    await cluster.stop();
  }
}

function createTarget(base: string, key: string, extraFields: object = {}): Target {
  return {
    url: `${base}/images/generations`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: 'gpt-image-1-mini',
      prompt: 'A coin',
      quality: 'low',
      size: '1024x1024',
      ...extraFields,
    }),
  };
}
