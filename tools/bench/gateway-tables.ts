/** The tables of the compared gateways: throughput, added latency, and CPU time by process. */
import { formatStoreName } from '../stores.ts';
import { GATEWAY, PEER, UPSTREAM } from './candidates.ts';
import type { GatewayBenchMode, GatewayMetric } from './gateways.ts';
import { computeMedian } from './load.ts';
import { formatInteger, formatMs, formatRatio, print, printTable } from './print-table.ts';

const HEADINGS: Readonly<Record<GatewayBenchMode, string>> = {
  buffered: 'Complete responses',
  stream: 'Streams',
  'paced stream': 'Streams with one chunk at a time',
};

function summarizeRuns(
  metrics: readonly GatewayMetric[],
  mode: GatewayBenchMode,
  concurrency: number,
  candidate: string,
) {
  const mine = metrics.filter(
    (metric) => metric.mode === mode && metric.concurrency === concurrency && metric.candidate === candidate,
  );
  const getMedian = (of: (metric: GatewayMetric) => number) => computeMedian(mine.map(of));
  return {
    perSecond: getMedian(({ perSecond }) => perSecond),
    p50Ms: getMedian(({ p50Ms }) => p50Ms),
    p99Ms: getMedian(({ p99Ms }) => p99Ms),
    cpuMs: getMedian(({ cpuMsPerRequest }) => cpuMsPerRequest),
    megabytes: getMedian(({ megabytes }) => megabytes),
    failures: mine.reduce((sum, { failures }) => sum + failures, 0),
    getCpuMs: (process: string) => getMedian(({ cpuMsByProcess }) => cpuMsByProcess[process] ?? 0),
  };
}

export function printGatewayTable(metrics: readonly GatewayMetric[], mode: GatewayBenchMode): void {
  const head = ['', 'concurrent', 'per second', `to ${PEER}`, 'p50 ms', 'p99 ms', 'CPU ms each', 'memory MB', 'failed'];
  const rows = [1, 16, 64].flatMap((concurrency) => {
    const peer = summarizeRuns(metrics, mode, concurrency, PEER);
    return [GATEWAY, PEER, 'bare pass-through', UPSTREAM].map((candidate) => {
      const { perSecond, p50Ms, p99Ms, cpuMs, megabytes, failures } = summarizeRuns(
        metrics,
        mode,
        concurrency,
        candidate,
      );
      const cost = candidate === UPSTREAM ? ['', ''] : [formatMs(cpuMs), formatInteger(megabytes)];
      return [
        candidate,
        concurrency,
        formatInteger(perSecond),
        formatRatio(perSecond / peer.perSecond),
        formatMs(p50Ms),
        formatMs(p99Ms),
        ...cost,
        failures,
      ];
    });
  });
  print(`### ${HEADINGS[mode]}, with the events in ${formatStoreName(process.env)}`);
  print();
  printTable(head, rows);
}

export function printAddedLatency(metrics: readonly GatewayMetric[]): void {
  const rows = (['buffered', 'stream', 'paced stream'] as const).map((mode) => {
    const upstream = summarizeRuns(metrics, mode, 1, UPSTREAM).p50Ms;
    const getAddedMs = (candidate: string) => summarizeRuns(metrics, mode, 1, candidate).p50Ms - upstream;
    return [
      mode,
      formatMs(getAddedMs(GATEWAY)),
      formatMs(getAddedMs(PEER)),
      formatMs(getAddedMs('bare pass-through')),
      formatRatio(getAddedMs(GATEWAY) / getAddedMs(PEER)),
    ];
  });
  print('### Added latency, p50 ms at concurrency 1');
  print();
  printTable(['', GATEWAY, PEER, 'bare pass-through', `to ${PEER}`], rows);
}

export function printCpuTimes(metrics: readonly GatewayMetric[]): void {
  const processes = ['gateway', 'postgres', 'projector', 'sagas', 'upstream'];
  const rows = (['buffered', 'stream', 'paced stream'] as const).flatMap((mode) =>
    [1, 64].map((concurrency) => {
      const { getCpuMs } = summarizeRuns(metrics, mode, concurrency, GATEWAY);
      return [mode, concurrency, ...processes.map((process) => formatMs(getCpuMs(process)))];
    }),
  );
  print('### CPU ms per request');
  print();
  printTable(['', 'concurrent', ...processes], rows);
}
