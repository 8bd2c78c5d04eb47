/**
 * `npm run prove:simulation`: carries out many random plans in virtual time, in each of which processes die, stores fail
 * and clocks differ, and checks the rules of the product after each. With `--mutants`, plants mistakes in the product
 * one after the other, and fails if a mistake breaks no rule.
 */
import { hash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { createProgram, runMain, startProgress } from '#foundation/command-line';
import { createPlan, describeFailure } from '../../libs/testing/src/simulation/index.ts';
import { MUTANTS, type Mutant } from './simulation/mutants.ts';
import type { SeedRange, SeedResult } from './simulation/run-seeds.ts';

const DEFAULT_SEEDS = 10_000;
const MUTANT_SEEDS = 2_000;
/** Half of the mutants are found by fewer seeds. */
const MAX_MEDIAN_SEEDS = 20;

interface Options {
  readonly seeds: number;
  readonly seed?: string;
  readonly mutants?: true;
  readonly only?: string;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!/^\d{1,7}$/.test(text) || count < 1)
    throw new Error('the number of seeds must be an integer from 1 to 9,999,999');
  return count;
}

/** Runs a worker thread until it ends. */
function runWorker(range: SeedRange, onResult: (result: SeedResult) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./simulation/run-seeds.js', import.meta.url), { workerData: range });
    worker.on('message', onResult);
    worker.on('error', reject);
    worker.on('exit', resolve);
  });
}

/** Runs one task after the other on each core. */
async function runOnAllCores<T>(tasks: readonly T[], run: (task: T) => Promise<void>): Promise<void> {
  const waiting = [...tasks];
  const runNext = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) await run(task);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runNext));
}

async function proveSeeds(seeds: number): Promise<boolean> {
  const startedAt = performance.now();
  const cores = availableParallelism();
  const totals = { seeds: 0, events: 0, requests: 0, kills: 0, hours: 0 };
  const faults = new Map<string, number>();
  const failures: SeedResult[] = [];
  const hashes: string[] = [];
  const progress = startProgress({ name: 'simulation', unit: 'seeds', total: seeds });
  const ranges = Array.from({ length: cores }, (_, i): SeedRange => ({ first: i + 1, last: seeds, step: cores }));
  await runOnAllCores(ranges, (range) =>
    runWorker(range, (result) => {
      totals.seeds++;
      totals.events += result.events;
      totals.requests += result.requests;
      totals.kills += result.kills;
      totals.hours += result.virtualMs / 3_600_000;
      hashes[result.seed] = result.hash;
      for (const [fault, count] of result.faults) faults.set(fault, (faults.get(fault) ?? 0) + count);
      if (result.violation) failures.push(result);
      progress.update(totals.seeds);
    }),
  );
  progress.finish();
  const seconds = (performance.now() - startedAt) / 1_000;
  print(
    `${totals.seeds} seeds, ${totals.requests} requests, ${totals.events} events, ${totals.kills} kills, ${Math.round(totals.hours)} hours of virtual time in ${Math.round(seconds)} s (${(totals.seeds / seconds).toFixed(1)} seeds/s)`,
  );
  print([...faults].map(([fault, count]) => `${fault}: ${count}`).join(', '));
  print(`hash of the hashes of all events: ${hash('sha256', hashes.join('\n'))}`);
  for (const { seed, violation } of failures.slice(0, 20))
    print(`seed ${seed}: ${violation?.rule}: ${violation?.detail}`);
  const [firstFailure] = failures;
  if (firstFailure) print(await describeFailure(createPlan(String(firstFailure.seed))));
  print(`${failures.length} seeds break a rule`);
  return failures.length === 0;
}

async function proveMutants(mutants: readonly Mutant[], seeds: number): Promise<boolean> {
  const needed: number[] = [];
  await runOnAllCores(mutants, async (mutant) => {
    let result: SeedResult | undefined;
    await runWorker({ first: 1, last: seeds, step: 1, mutant }, (latest) => {
      result = latest;
    });
    if (result?.violation) needed.push(result.seed);
    const text = result?.violation
      ? `after ${result.seed} seeds: ${result.violation.rule}`
      : `NOT FOUND within ${seeds} seeds`;
    print(`${mutant.name} (${mutant.breaks}): ${text}`);
  });
  const median = needed.toSorted((a, b) => a - b)[needed.length >> 1] ?? Number.POSITIVE_INFINITY;
  print(`${needed.length} of ${mutants.length} mutants found, half of them within ${median} seeds`);
  return needed.length === mutants.length && (mutants.length < MUTANTS.length || median < MAX_MEDIAN_SEEDS);
}

async function prove({ seeds, seed, mutants, only = '' }: Options): Promise<boolean> {
  if (mutants)
    return proveMutants(
      MUTANTS.filter(({ name }) => name.includes(only)),
      Math.min(seeds, MUTANT_SEEDS),
    );
  if (seed === undefined) return proveSeeds(seeds);
  const description = await describeFailure(createPlan(seed));
  print(description);
  return description.endsWith('breaks no rule');
}

const program = createProgram(
  'npm run prove:simulation --',
  'Checks the rules of the product in random plans with faults.',
);
program.option('--seeds <number>', 'The number of seeds.', parseCount, DEFAULT_SEEDS);
program.option('--seed <seed>', 'Runs one seed. If it breaks a rule, prints its shortest plan and the log of events.');
program.option('--mutants', 'Plants mistakes in the product, which must be found.');
program.option('--only <text>', 'With --mutants: only those whose names contain the text.');
program.action(async (options: Options) => {
  if (!(await prove(options))) process.exitCode = 1;
});
await runMain(program);
