/** Compares streaming speech through the gateway with a bare pass-through and the upstream alone, in one run. */
import path from 'node:path';
import { Agent, request } from 'undici';
import { ProofCluster } from '../cluster.ts';
import { root, startProgram } from '../processes.ts';
import type { Target } from './load.ts';

const CONCURRENCIES = [1, 16];
const WARMUP_SECONDS = 2;
/** About the longest input that the provider accepts. The sandbox returns one minute of MP3 for it: 0.96 MB. */
const INPUT = 'Every coin that comes in is written down. '.repeat(97);

export interface SpeechMetric {
  readonly candidate: string;
  readonly concurrency: number;
  readonly megabytesPerSecond: number;
  /** The median time until the first byte of audio. */
  readonly firstMs: number;
  readonly failures: number;
}

export interface SpeechBench {
  readonly seconds: number;
  readonly rounds: number;
  readonly dataDir: string;
  print(line: string): void;
}

export async function benchSpeech({ seconds, rounds, dataDir, print }: SpeechBench): Promise<readonly SpeechMetric[]> {
  const cluster = await ProofCluster.start(dataDir, 1);
  const upstream = `${cluster.sandbox}/openai/v1`;
  const program = path.join(root, 'dist/tools/bench/pass-through.js');
  const bare = await startProgram([process.execPath, program], { UPSTREAM: upstream }, /listening/);
  try {
    const { apiKey } = await cluster.createCustomer(1_000);
    const candidates: Readonly<Record<string, Target>> = {
      countinghouse: createTarget(`${cluster.gateways[0]}/v1`, apiKey),
      'bare pass-through': createTarget(`${bare.readyLine.replace('listening on ', '')}/v1`, 'sandbox'),
      'upstream alone': createTarget(upstream, 'sandbox'),
    };
    const metrics: SpeechMetric[] = [];
    for (const candidateTarget of Object.values(candidates)) await measureStreams(candidateTarget, 16, WARMUP_SECONDS);
    for (const concurrency of CONCURRENCIES) {
      for (let round = 0; round < rounds; round++)
        for (const [candidate, candidateTarget] of Object.entries(candidates))
          metrics.push({ ...(await measureStreams(candidateTarget, concurrency, seconds)), candidate, concurrency });
      print(`speech at concurrency ${concurrency} measured`);
    }
    return metrics;
  } finally {
    await bare.stop();
    await cluster.stop();
  }
}

/** Requests streams with a constant concurrency of `connections`, and reads them as fast as possible. */
async function measureStreams({ url, headers, body }: Target, connections: number, seconds: number) {
  const dispatcher = new Agent({ connections });
  const until = performance.now() + seconds * 1_000;
  let bytes = 0;
  let failures = 0;
  const waits: number[] = [];
  const runWorker = async () => {
    while (performance.now() < until) {
      const sentAt = performance.now();
      const response = await request(url, { method: 'POST', headers, body, dispatcher });
      if (response.statusCode !== 200) failures++;
      let isFirst = true;
      for await (const chunk of response.body) {
        if (isFirst) waits.push(performance.now() - sentAt);
        isFirst = false;
        bytes += (chunk as Uint8Array).length;
      }
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: connections }, runWorker));
  const megabytesPerSecond = bytes / 1e6 / ((performance.now() - started) / 1_000);
  await dispatcher.close();
  waits.sort((a, b) => a - b);
  return { megabytesPerSecond, firstMs: waits[Math.floor(waits.length / 2)] ?? 0, failures };
}

function createTarget(base: string, key: string): Target {
  return {
    url: `${base}/audio/speech`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'tts-1', voice: 'alloy', input: INPUT }),
  };
}
