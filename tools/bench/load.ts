import { createRequire } from 'node:module';
import path from 'node:path';
import type autocannon from 'autocannon';
import { Agent, request } from 'undici';
import { install } from '../proofs/clients/install.ts';

const AUTOCANNON = { autocannon: '9.0.0' };

export interface Target {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

export interface LoadMetric {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failures: number;
}

/** Sends requests one after the other. Latencies are more precise than those of `measureInParallel`. */
export async function measureSequentially({ url, headers, body }: Target, seconds: number): Promise<LoadMetric> {
  const dispatcher = new Agent({ connections: 1 });
  const latencies: number[] = [];
  let failures = 0;
  const started = performance.now();
  while (performance.now() - started < seconds * 1000) {
    const sentAt = performance.now();
    const response = await request(url, { method: 'POST', headers, body, dispatcher });
    await response.body.arrayBuffer();
    latencies.push(performance.now() - sentAt);
    if (response.statusCode !== 200) failures++;
  }
  const perSecond = latencies.length / ((performance.now() - started) / 1000);
  latencies.sort((a, b) => a - b);
  const getPercentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
  await dispatcher.close();
  return { perSecond, p50Ms: getPercentile(0.5), p99Ms: getPercentile(0.99), failures };
}

/** Installs autocannon unless it is already installed. Only its types are a development dependency. */
async function loadAutocannon(): Promise<typeof autocannon> {
  const folder = await install({ npm: AUTOCANNON });
  return createRequire(path.join(folder, 'package.json'))('autocannon');
}

/** Sends requests with a constant concurrency of `connections`. Latencies have a resolution of 1 ms. */
export async function measureInParallel(
  { url, headers, body }: Target,
  connections: number,
  seconds: number,
): Promise<LoadMetric> {
  const sendRequests = await loadAutocannon();
  const { requests, latency, non2xx, errors } = await sendRequests({
    url,
    method: 'POST',
    headers,
    body,
    connections,
    duration: seconds,
    timeout: 30,
  });
  return { perSecond: requests.total / seconds, p50Ms: latency.p50, p99Ms: latency.p99, failures: non2xx + errors };
}

export function computeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle) - 1] ?? 0)) / 2;
}
