/**
 * `npm run bench [-- gateways|ledger|volume|media|data|private]`: what the paths of a request and of an event cost, beside peers, in one run
 * on one machine. Prints tables that can go into docs/performance.md as they are.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { createLog, openFoundation, readSettings } from '#foundation';
import { storeName, storeSettings } from '../stores.ts';
import { benchChallenges } from './challenges.ts';
import { benchData } from './data.ts';
import { benchGateways, type GatewayBenchMode, type GatewayFigure } from './gateways.ts';
import { benchImages } from './images.ts';
import { benchLedger } from './ledger.ts';
import { type LoadFigure, median } from './load.ts';
import { benchPrivate, type PrivateFigure, type PrivateMode, type Side } from './private.ts';
import { benchSpeech } from './speech.ts';
import { benchVolume } from './volume.ts';

const OURS = 'countinghouse';
const PEER = 'portkey';
const UPSTREAM = 'upstream itself';
const SECONDS = 3;
const ROUNDS = 3;
const PRIVATE_SECONDS = 0.5;
const VOLUME = Number(process.env.BENCH_EVENTS ?? 5_000_000);

const HEADINGS: Readonly<Record<GatewayBenchMode, string>> = {
  whole: 'Whole answers',
  stream: 'Streams',
  'paced stream': 'Streams whose pieces come one by one',
};

const print = (line = '') => void process.stdout.write(`${line}\n`);
const progress = (line: string) => void process.stderr.write(`  ${line}\n`);

/** Runs in a directory of its own, which is gone afterwards. */
async function inDirectory(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-bench-'));
  try {
    await run(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  print(`| ${head.join(' | ')} |`);
  print(`|${head.map((_, i) => (i === 0 ? '---' : '---:')).join('|')}|`);
  for (const row of rows) print(`| ${row.join(' | ')} |`);
  print();
}

const whole = (value: number) => Math.round(value).toLocaleString('en');
const times = (value: number) => `${value.toFixed(2)} ×`;
const ms = (value: number) => value.toFixed(2);

async function gateways(): Promise<void> {
  await inDirectory(async (dataDir) => {
    const figures = await benchGateways({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: progress });
    for (const mode of ['whole', 'stream', 'paced stream'] as const) gatewayTable(figures, mode);
    addedLatency(figures);
    whereTimeGoes(figures);
  });
}

function typical(figures: readonly GatewayFigure[], mode: GatewayBenchMode, concurrency: number, candidate: string) {
  const mine = figures.filter(
    (each) => each.mode === mode && each.concurrency === concurrency && each.candidate === candidate,
  );
  const middle = (of: (figure: GatewayFigure) => number) => median(mine.map(of));
  return {
    perSecond: middle(({ perSecond }) => perSecond),
    p50Ms: middle(({ p50Ms }) => p50Ms),
    p99Ms: middle(({ p99Ms }) => p99Ms),
    cpuMs: middle(({ cpuMsPerRequest }) => cpuMsPerRequest),
    megabytes: middle(({ megabytes }) => megabytes),
    failures: mine.reduce((sum, { failures }) => sum + failures, 0),
    cpuMsOf: (process: string) => middle(({ cpuMsByProcess }) => cpuMsByProcess[process] ?? 0),
  };
}

function gatewayTable(figures: readonly GatewayFigure[], mode: GatewayBenchMode): void {
  const head = ['', 'at once', 'per second', `to ${PEER}`, 'p50 ms', 'p99 ms', 'CPU ms each', 'memory MB', 'failed'];
  const rows = [1, 16, 64].flatMap((concurrency) => {
    const peer = typical(figures, mode, concurrency, PEER);
    return [OURS, PEER, 'bare pass-through', UPSTREAM].map((candidate) => {
      const { perSecond, p50Ms, p99Ms, cpuMs, megabytes, failures } = typical(figures, mode, concurrency, candidate);
      const cost = candidate === UPSTREAM ? ['', ''] : [ms(cpuMs), whole(megabytes)];
      return [
        candidate,
        concurrency,
        whole(perSecond),
        times(perSecond / peer.perSecond),
        ms(p50Ms),
        ms(p99Ms),
        ...cost,
        failures,
      ];
    });
  });
  print(`### ${HEADINGS[mode]}, with the facts in ${storeName(process.env)}`);
  print();
  table(head, rows);
}

function addedLatency(figures: readonly GatewayFigure[]): void {
  const rows = (['whole', 'stream', 'paced stream'] as const).map((mode) => {
    const upstream = typical(figures, mode, 1, UPSTREAM).p50Ms;
    const added = (candidate: string) => typical(figures, mode, 1, candidate).p50Ms - upstream;
    return [mode, ms(added(OURS)), ms(added(PEER)), ms(added('bare pass-through')), times(added(OURS) / added(PEER))];
  });
  print('### Added to the upstream, p50 ms at concurrency 1');
  print();
  table(['', OURS, PEER, 'bare pass-through', `to ${PEER}`], rows);
}

function whereTimeGoes(figures: readonly GatewayFigure[]): void {
  const processes = ['gateway', 'postgres', 'projector', 'sagas', 'upstream'];
  const rows = (['whole', 'stream', 'paced stream'] as const).flatMap((mode) =>
    [1, 64].map((concurrency) => {
      const { cpuMsOf } = typical(figures, mode, concurrency, OURS);
      return [mode, concurrency, ...processes.map((process) => ms(cpuMsOf(process)))];
    }),
  );
  print('### Where the time goes: CPU ms for each request');
  print();
  table(['', 'at once', ...processes], rows);
}

async function ledger(): Promise<void> {
  await inDirectory(async (dataDir) => {
    const foundation = await openFoundation(
      readSettings({ DATA_DIR: dataDir, ...storeSettings(process.env) }),
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
        rows.push([accounts, concurrency, whole(pairsPerSecond), ms(p50Ms), ms(p99Ms)]);
      }
      print(`### Ledger: hold and settle, each durable in ${storeName(process.env)}`);
      print();
      table(['accounts', 'at once', 'pairs per second', 'p50 ms', 'p99 ms'], rows);
    } finally {
      await foundation.close();
    }
  });
}

async function volume(): Promise<void> {
  await inDirectory(async (directory) => {
    const dataDirs = [path.join(directory, 'full'), path.join(directory, 'empty')] as const;
    const figures = await benchVolume({ events: VOLUME, dataDirs, print: progress });
    print(`### A store of ${whole(VOLUME)} events`);
    print();
    table(
      ['', ''],
      [
        ['projected into all read models, events per second', whole(figures.projectedPerSecond)],
        ['replayed to a trial balance, events per second', whole(figures.replayedPerSecond)],
        ['verified against every read model, events per second', whole(figures.verifiedPerSecond)],
        ['first request of an account with 1,000,000 events after a restart, ms', ms(figures.firstRequestMs)],
        ['the one after it, ms', ms(figures.secondRequestMs)],
        ...figures.latency.map(({ concurrency, fullP50Ms, emptyP50Ms }) => [
          `p50 ms at concurrency ${concurrency}, beside an empty store`,
          `${ms(fullP50Ms)} / ${ms(emptyP50Ms)} = ${times(fullP50Ms / emptyP50Ms)}`,
        ]),
      ],
    );
  });
}

async function data(): Promise<void> {
  await inDirectory(lookupsIn);
  await inDirectory(challengesIn);
}

async function challengesIn(dataDir: string): Promise<void> {
  const figures = await benchChallenges({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: progress });
  const rows = [...new Set(figures.map(({ what }) => what))].map((what) => {
    const of = (figure: (each: (typeof figures)[number]) => number) =>
      median(figures.filter((each) => each.what === what).map(figure));
    const failed = figures.filter((each) => each.what === what).reduce((sum, { failures }) => sum + failures, 0);
    return [
      what,
      whole(of(({ perSecond }) => perSecond)),
      ms(of(({ p50Ms }) => p50Ms)),
      ms(of(({ p99Ms }) => p99Ms)),
      failed,
    ];
  });
  print('### Payments for single requests, 64 at once');
  print();
  table(['', 'per second', 'p50 ms', 'p99 ms', 'failed'], rows);
}

async function lookupsIn(dataDir: string): Promise<void> {
  const figures = await benchData({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: progress });
  print('### Lookups of data');
  print();
  besideBare(figures, [1, 64]);
}

async function media(): Promise<void> {
  await inDirectory(imagesIn);
  await inDirectory(speechIn);
}

async function imagesIn(dataDir: string): Promise<void> {
  const figures = await benchImages({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: progress });
  print('### Images, kept');
  print();
  besideBare(figures, [1, 16]);
}

interface BesideBare extends LoadFigure {
  readonly candidate: string;
  readonly concurrency: number;
}

function besideBare(figures: readonly BesideBare[], concurrencies: readonly number[]): void {
  const rows = concurrencies.flatMap((concurrency) => {
    const of = (candidate: string, figure: (each: BesideBare) => number) =>
      median(figures.filter((each) => each.candidate === candidate && each.concurrency === concurrency).map(figure));
    return [OURS, 'bare pass-through', UPSTREAM].map((candidate) => [
      candidate,
      concurrency,
      whole(of(candidate, ({ perSecond }) => perSecond)),
      times(of(candidate, ({ perSecond }) => perSecond) / of('bare pass-through', ({ perSecond }) => perSecond)),
      ms(of(candidate, ({ p50Ms }) => p50Ms)),
      ms(of(candidate, ({ p99Ms }) => p99Ms)),
      of(candidate, ({ failures }) => failures),
    ]);
  });
  table(['', 'at once', 'per second', 'to bare', 'p50 ms', 'p99 ms', 'failed'], rows);
}

async function speechIn(dataDir: string): Promise<void> {
  const figures = await benchSpeech({ seconds: SECONDS, rounds: ROUNDS, dataDir, print: progress });
  const rows = [1, 16].flatMap((concurrency) => {
    const of = (candidate: string, figure: (each: (typeof figures)[number]) => number) =>
      median(figures.filter((each) => each.candidate === candidate && each.concurrency === concurrency).map(figure));
    return [OURS, 'bare pass-through', UPSTREAM].map((candidate) => {
      const megabytes = of(candidate, ({ megabytesPerSecond }) => megabytesPerSecond);
      return [
        candidate,
        concurrency,
        megabytes.toFixed(1),
        times(megabytes / of('bare pass-through', ({ megabytesPerSecond }) => megabytesPerSecond)),
        ms(of(candidate, ({ firstMs }) => firstMs)),
        of(candidate, ({ failures }) => failures),
      ];
    });
  });
  print('### Speech, streamed');
  print();
  table(['', 'at once', 'MB per second', 'to bare', 'first byte ms', 'failed'], rows);
}

async function privateModels(): Promise<void> {
  await inDirectory(async (dataDir) => {
    const bench = { seconds: PRIVATE_SECONDS, rounds: ROUNDS, dataDir, print: progress };
    const { figures, memory, failures } = await benchPrivate(bench);
    print('### Private models through the gateway, encrypted');
    print();
    privateTable(figures, 'gateway');
    print('### Private models through the proxy');
    print();
    privateTable(figures, 'proxy');
    print(`### Memory while 64 answers of 10 MB wait for their readers at once (${failures} failed)`);
    print();
    const rows = memory.map(({ process, before, peak, after }) => [process, whole(before), whole(peak), whole(after)]);
    table(['resident MB', 'before', 'at most', 'afterwards'], rows);
  });
}

function privateTable(figures: readonly PrivateFigure[], side: Side): void {
  const mine = figures.filter((each) => each.side === side);
  const candidates = [...new Set(mine.map(({ candidate }) => candidate))];
  const loads = [...new Set(mine.map(({ mode, concurrency }) => `${mode}/${concurrency}`))];
  const rows = loads.flatMap((load) => {
    const [mode = '', concurrency] = load.split('/') as [PrivateMode, string];
    const of = (candidate: string, figure: (each: PrivateFigure) => number) =>
      median(
        mine
          .filter((each) => each.mode === mode && `${each.concurrency}` === concurrency && each.candidate === candidate)
          .map(figure),
      );
    const bare = of('bare pass-through', ({ perSecond }) => perSecond);
    const direct = of(UPSTREAM, ({ firstMs }) => firstMs);
    return candidates.map((candidate) => [
      `${mode}: ${candidate}`,
      concurrency,
      of(candidate, ({ perSecond }) => perSecond).toFixed(1),
      times(of(candidate, ({ perSecond }) => perSecond) / bare),
      of(candidate, ({ megabytesPerSecond }) => megabytesPerSecond).toFixed(1),
      ms(of(candidate, ({ p50Ms }) => p50Ms)),
      ms(of(candidate, ({ firstMs }) => firstMs)),
      ms(of(candidate, ({ firstMs }) => firstMs) - direct),
      of(candidate, ({ failures }) => failures),
    ]);
  });
  const head = [
    '',
    'at once',
    'per second',
    'to bare',
    'MB per second',
    'p50 ms',
    'first byte ms',
    'added ms',
    'failed',
  ];
  table(head, rows);
}

const parts = { gateways, ledger, volume, media, data, private: privateModels };
const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !(name in parts));
if (unknown !== undefined) {
  process.stderr.write(`There is no part "${unknown}": name ${Object.keys(parts).join(', ')} or nothing for all.\n`);
  process.exit(1);
}
const today = new Date().toISOString().slice(0, 10);
print(
  `${today}, ${availableParallelism()} cores of ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, \`npm run bench${wanted.length > 0 ? ` -- ${wanted.join(' ')}` : ''}\``,
);
print();
for (const [name, run] of Object.entries(parts)) if (wanted.length === 0 || wanted.includes(name)) await run();
