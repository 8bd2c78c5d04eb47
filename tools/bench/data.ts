/** Lookups of data through the gateway, beside a bare pass-through and the vendor itself, in one run. */
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { root, start } from '../processes.ts';
import { inParallel, type LoadFigure, oneByOne, type Target } from './load.ts';

const CONCURRENCIES = [1, 64];
const WARM_UP_SECONDS = 4;

export interface DataFigure extends LoadFigure {
  readonly candidate: string;
  readonly concurrency: number;
}

export interface DataBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

export async function benchData({ seconds, rounds, dataDir, print }: DataBench): Promise<readonly DataFigure[]> {
  const cluster = await ProofCluster.start(dataDir, 1);
  const upstream = `${cluster.sandbox}/exa`;
  const program = path.join(root, 'dist/tools/bench/pass-through.js');
  const bare = await start([process.execPath, program], { UPSTREAM: upstream }, /listening/);
  try {
    const { apiKey } = await cluster.customer(1_000);
    const candidates: Readonly<Record<string, Target>> = {
      countinghouse: target(`${cluster.gateways[0]}/v1/data/api/web`, apiKey),
      'bare pass-through': target(`${bare.line.replace('listening on ', '')}/v1`, 'sandbox'),
      'upstream itself': target(upstream, 'sandbox'),
    };
    const figures: DataFigure[] = [];
    for (const each of Object.values(candidates)) await inParallel(each, 64, WARM_UP_SECONDS);
    for (const concurrency of CONCURRENCIES) {
      for (let round = 0; round < rounds; round++) {
        for (const [candidate, asked] of Object.entries(candidates)) {
          const load = concurrency === 1 ? oneByOne(asked, seconds) : inParallel(asked, concurrency, seconds);
          figures.push({ ...(await load), candidate, concurrency });
        }
      }
      print(`lookups at concurrency ${concurrency} measured`);
    }
    return figures;
  } finally {
    await bare.stop();
    await cluster.stop();
  }
}

function target(base: string, key: string): Target {
  return {
    url: `${base}/contents`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ urls: ['https://example.com/lighthouses'], text: true }),
  };
}
