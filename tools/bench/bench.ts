/**
 * `npm run bench [-- gateways|ledger|volume|media|data|private]`: measures the cost of requests and events. Most
 * requests are compared with a bare pass-through, and chats also with another gateway. Prints tables for
 * docs/performance.md.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { createLog, openFoundation, readSettings } from '#foundation';
import { formatStoreName, getStoreSettings } from '../stores.ts';
import { GATEWAY, UPSTREAM } from './candidates.ts';
import { benchChallenges } from './challenges.ts';
import { benchData } from './data.ts';
import { printAddedLatency, printCpuTimes, printGatewayTable } from './gateway-tables.ts';
import { benchGateways } from './gateways.ts';
import { benchImages } from './images.ts';
import { benchLedger } from './ledger.ts';
import { computeMedian, type LoadMetric } from './load.ts';
import { formatInteger, formatMs, formatRatio, print, printProgress, printTable } from './print-table.ts';
import { benchPrivate, type PrivateMetric, type PrivateMode, type Side } from './private.ts';
import { benchSpeech } from './speech.ts';
import { benchVolume } from './volume.ts';

const SECONDS = 3;
const ROUNDS = 3;
const PRIVATE_SECONDS = 0.5;
const VOLUME_EVENTS = Number(process.env.BENCH_EVENTS ?? 5_000_000);

/** Runs `run` with a temporary directory, which is deleted afterwards. */
async function withTempDirectory(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-bench-'));
  try {
    await run(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function runGateways(): Promise<void> {
  await withTempDirectory(async (dataDir) => {
    const metrics = await benchGateways({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: printProgress });
    for (const mode of ['buffered', 'stream', 'paced stream'] as const) printGatewayTable(metrics, mode);
    printAddedLatency(metrics);
    printCpuTimes(metrics);
  });
}

async function runLedger(): Promise<void> {
  await withTempDirectory(async (dataDir) => {
    const foundation = await openFoundation(
      readSettings({ DATA_DIR: dataDir, ...getStoreSettings(process.env) }),
      createLog('warn'),
    );
    try {
      const rows = [];
      for (const [accounts, concurrency] of [
        [1, 256],
        [1_000, 256],
        [1_000, 16],
      ] as const) {
        const { pairsPerSecond, p50Ms, p99Ms } = await benchLedger(foundation, accounts, concurrency);
        rows.push([accounts, concurrency, formatInteger(pairsPerSecond), formatMs(p50Ms), formatMs(p99Ms)]);
      }
      print(`### Ledger: hold and settle, each durable in ${formatStoreName(process.env)}`);
      print();
      printTable(['accounts', 'concurrent', 'pairs per second', 'p50 ms', 'p99 ms'], rows);
    } finally {
      await foundation.close();
    }
  });
}

async function runVolume(): Promise<void> {
  await withTempDirectory(async (directory) => {
    const dataDirs = [path.join(directory, 'full'), path.join(directory, 'empty')] as const;
    const metrics = await benchVolume({ events: VOLUME_EVENTS, dataDirs, print: printProgress });
    print(`### A store of ${formatInteger(VOLUME_EVENTS)} events`);
    print();
    printTable(
      ['', ''],
      [
        ['projected into all read models, events per second', formatInteger(metrics.projectedPerSecond)],
        ['replayed to a trial balance, events per second', formatInteger(metrics.replayedPerSecond)],
        ['verified against every read model, events per second', formatInteger(metrics.verifiedPerSecond)],
        ['first request of an account with 1,000,000 events after a restart, ms', formatMs(metrics.firstRequestMs)],
        ['the request after it, ms', formatMs(metrics.secondRequestMs)],
        ...metrics.latency.map(({ concurrency, fullP50Ms, emptyP50Ms }) => [
          `p50 ms at concurrency ${concurrency}, compared with an empty store`,
          `${formatMs(fullP50Ms)} / ${formatMs(emptyP50Ms)} = ${formatRatio(fullP50Ms / emptyP50Ms)}`,
        ]),
      ],
    );
  });
}

async function runData(): Promise<void> {
  await withTempDirectory(reportLookups);
  await withTempDirectory(reportChallenges);
}

async function reportChallenges(dataDir: string): Promise<void> {
  const metrics = await benchChallenges({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: printProgress });
  const rows = [...new Set(metrics.map(({ what }) => what))].map((what) => {
    const getMedian = (selectValue: (metric: (typeof metrics)[number]) => number) =>
      computeMedian(metrics.filter((metric) => metric.what === what).map(selectValue));
    const failed = metrics.filter((metric) => metric.what === what).reduce((sum, { failures }) => sum + failures, 0);
    return [
      what,
      formatInteger(getMedian(({ perSecond }) => perSecond)),
      formatMs(getMedian(({ p50Ms }) => p50Ms)),
      formatMs(getMedian(({ p99Ms }) => p99Ms)),
      failed,
    ];
  });
  print('### Pay per request, 64 concurrent');
  print();
  printTable(['', 'per second', 'p50 ms', 'p99 ms', 'failed'], rows);
}

async function reportLookups(dataDir: string): Promise<void> {
  const metrics = await benchData({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: printProgress });
  print('### Data lookups');
  print();
  printComparison(metrics, [1, 64]);
}

async function runMedia(): Promise<void> {
  await withTempDirectory(reportImages);
  await withTempDirectory(reportSpeech);
}

async function reportImages(dataDir: string): Promise<void> {
  const metrics = await benchImages({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: printProgress });
  print('### Images, stored');
  print();
  printComparison(metrics, [1, 16]);
}

interface ComparedMetric extends LoadMetric {
  readonly candidate: string;
  readonly concurrency: number;
}

function printComparison(metrics: readonly ComparedMetric[], concurrencies: readonly number[]): void {
  const rows = concurrencies.flatMap((concurrency) => {
    const getMedian = (candidate: string, selectValue: (metric: ComparedMetric) => number) =>
      computeMedian(
        metrics
          .filter((metric) => metric.candidate === candidate && metric.concurrency === concurrency)
          .map(selectValue),
      );
    return [GATEWAY, 'bare pass-through', UPSTREAM].map((candidate) => [
      candidate,
      concurrency,
      formatInteger(getMedian(candidate, ({ perSecond }) => perSecond)),
      formatRatio(
        getMedian(candidate, ({ perSecond }) => perSecond) /
          getMedian('bare pass-through', ({ perSecond }) => perSecond),
      ),
      formatMs(getMedian(candidate, ({ p50Ms }) => p50Ms)),
      formatMs(getMedian(candidate, ({ p99Ms }) => p99Ms)),
      getMedian(candidate, ({ failures }) => failures),
    ]);
  });
  printTable(['', 'concurrent', 'per second', 'to bare', 'p50 ms', 'p99 ms', 'failed'], rows);
}

async function reportSpeech(dataDir: string): Promise<void> {
  const metrics = await benchSpeech({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: printProgress });
  const rows = [1, 16].flatMap((concurrency) => {
    const getMedian = (candidate: string, selectValue: (metric: (typeof metrics)[number]) => number) =>
      computeMedian(
        metrics
          .filter((metric) => metric.candidate === candidate && metric.concurrency === concurrency)
          .map(selectValue),
      );
    return [GATEWAY, 'bare pass-through', UPSTREAM].map((candidate) => {
      const megabytes = getMedian(candidate, ({ megabytesPerSecond }) => megabytesPerSecond);
      return [
        candidate,
        concurrency,
        megabytes.toFixed(1),
        formatRatio(megabytes / getMedian('bare pass-through', ({ megabytesPerSecond }) => megabytesPerSecond)),
        formatMs(getMedian(candidate, ({ firstMs }) => firstMs)),
        getMedian(candidate, ({ failures }) => failures),
      ];
    });
  });
  print('### Speech, streaming');
  print();
  printTable(['', 'concurrent', 'MB per second', 'to bare', 'first byte ms', 'failed'], rows);
}

async function runPrivateModels(): Promise<void> {
  await withTempDirectory(async (dataDir) => {
    const bench = { seconds: PRIVATE_SECONDS, rounds: ROUNDS, dataDir, print: printProgress };
    const { metrics, memory, failures } = await benchPrivate(bench);
    print('### Private models through the gateway, encrypted');
    print();
    printPrivateTable(metrics, 'gateway');
    print('### Private models through the proxy');
    print();
    printPrivateTable(metrics, 'proxy');
    print(`### Memory with 64 concurrent responses of 10 MB to slow clients (${failures} failed)`);
    print();
    const rows = memory.map(({ process, before, peak, after }) => [
      process,
      formatInteger(before),
      formatInteger(peak),
      formatInteger(after),
    ]);
    printTable(['resident MB', 'before', 'at most', 'afterwards'], rows);
  });
}

function printPrivateTable(metrics: readonly PrivateMetric[], side: Side): void {
  const mine = metrics.filter((metric) => metric.side === side);
  const candidates = [...new Set(mine.map(({ candidate }) => candidate))];
  const loads = [...new Set(mine.map(({ mode, concurrency }) => `${mode}/${concurrency}`))];
  const rows = loads.flatMap((load) => {
    const [mode = '', concurrency] = load.split('/') as [PrivateMode, string];
    const getMedian = (candidate: string, selectValue: (metric: PrivateMetric) => number) =>
      computeMedian(
        mine
          .filter(
            (metric) =>
              metric.mode === mode && `${metric.concurrency}` === concurrency && metric.candidate === candidate,
          )
          .map(selectValue),
      );
    const bare = getMedian('bare pass-through', ({ perSecond }) => perSecond);
    const direct = getMedian(UPSTREAM, ({ firstMs }) => firstMs);
    return candidates.map((candidate) => [
      `${mode}: ${candidate}`,
      concurrency,
      getMedian(candidate, ({ perSecond }) => perSecond).toFixed(1),
      formatRatio(getMedian(candidate, ({ perSecond }) => perSecond) / bare),
      getMedian(candidate, ({ megabytesPerSecond }) => megabytesPerSecond).toFixed(1),
      formatMs(getMedian(candidate, ({ p50Ms }) => p50Ms)),
      formatMs(getMedian(candidate, ({ firstMs }) => firstMs)),
      formatMs(getMedian(candidate, ({ firstMs }) => firstMs) - direct),
      getMedian(candidate, ({ failures }) => failures),
    ]);
  });
  const head = [
    '',
    'concurrent',
    'per second',
    'to bare',
    'MB per second',
    'p50 ms',
    'first byte ms',
    'added ms',
    'failed',
  ];
  printTable(head, rows);
}

const parts = {
  gateways: runGateways,
  ledger: runLedger,
  volume: runVolume,
  media: runMedia,
  data: runData,
  private: runPrivateModels,
};
const requestedParts = process.argv.slice(2);
const unknown = requestedParts.find((name) => !(name in parts));
if (unknown !== undefined) {
  process.stderr.write(`Unknown part "${unknown}": use ${Object.keys(parts).join(', ')}, or no argument for all.\n`);
  process.exit(1);
}
const date = new Date().toISOString().slice(0, 10);
print(
  `${date}, ${availableParallelism()} cores of ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, \`npm run bench${requestedParts.length > 0 ? ` -- ${requestedParts.join(' ')}` : ''}\``,
);
print();
for (const [name, run] of Object.entries(parts))
  if (requestedParts.length === 0 || requestedParts.includes(name)) await run();
