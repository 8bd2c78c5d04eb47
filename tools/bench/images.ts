/** Images through the gateway, beside a bare pass-through that keeps them in the same kind of store, in one run. */
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { root, start } from '../processes.ts';
import { inParallel, type LoadFigure, oneByOne, type Target } from './load.ts';

const CONCURRENCIES = [1, 16];
const WARM_UP_SECONDS = 4;

export interface ImageFigure extends LoadFigure {
  readonly candidate: string;
  readonly concurrency: number;
}

export interface ImageBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

export async function benchImages({ seconds, rounds, dataDir, print }: ImageBench): Promise<readonly ImageFigure[]> {
  const cluster = await ProofCluster.start(dataDir, 1);
  const upstream = `${cluster.sandbox}/openai/v1`;
  const program = path.join(root, 'dist/tools/bench/images-pass-through.js');
  const env = { UPSTREAM: upstream, FILES_DIR: path.join(dataDir, 'passed') };
  const bare = await start([process.execPath, program], env, /listening/);
  try {
    const { apiKey } = await cluster.customer(1_000);
    const candidates: Readonly<Record<string, Target>> = {
      countinghouse: target(`${cluster.gateways[0]}/v1`, apiKey, { model: 'openai/gpt-image-1-mini' }),
      'bare pass-through': target(`${bare.line.replace('listening on ', '')}/v1`, 'sandbox'),
      'upstream itself': target(upstream, 'sandbox'),
    };
    const figures: ImageFigure[] = [];
    for (const each of Object.values(candidates)) await inParallel(each, 16, WARM_UP_SECONDS);
    for (const concurrency of CONCURRENCIES) {
      for (let round = 0; round < rounds; round++) {
        for (const [candidate, asked] of Object.entries(candidates)) {
          const load = concurrency === 1 ? oneByOne(asked, seconds) : inParallel(asked, concurrency, seconds);
          figures.push({ ...(await load), candidate, concurrency });
        }
      }
      print(`images at concurrency ${concurrency} measured`);
    }
    return figures;
  } finally {
    await bare.stop();
    await cluster.stop();
  }
}

function target(base: string, key: string, more: object = {}): Target {
  return {
    url: `${base}/images/generations`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'gpt-image-1-mini', prompt: 'A coin', quality: 'low', size: '1024x1024', ...more }),
  };
}
