/**
 * `npm run prove:holds [-- PART…] [--seeds N] [--gateways N] [--details]`: what providers bill is bounded over all
 * running requests of a payer, and requests wait for money instead of truncating each other. With one gateway and with
 * three, concurrent requests without an output limit share a balance for some of them. The sandbox counts what it bills
 * until it notices a disconnect. The parts:
 * - `fast`: 64 responses at 800 tokens per second, with money for 70 or 40, from a balance or within a key's limit; and
 *   single requests with little money.
 * - `equal`: 64 and 200 callers of 1,600 tokens each, with money for 40: streamed at 100 tokens per second, as one chunk
 *   after the same time (delayed), and as one chunk in no time (immediate). In every seed the providers bill at most the
 *   balance and X (0.02 USD or 3 % of the balance), at least 36 responses are complete, and the ledger agrees with the
 *   bill within 1 % where the provider reported the usage, within 25 % where it was estimated. In odd seeds nothing is
 *   measured of the model before.
 * - `ample`: 64 streams of 500 tokens, with money for 70: all are complete, before anything is measured and after.
 * - `varied`: log-normal lengths at 100 tokens per second, with money for 40 and 70. On average over all of these waves,
 *   at most 12 % of what is spent pays for truncated responses, and of each kind of wave nine tenths of the responses that
 *   the money affords are complete. The lengths that were measured before are shorter than usual, by chance.
 * - `kinds`, with three gateways: as `equal`, within a key's limit, with two choices, Responses, Messages, private models
 *   and searches. A request that may search has one large hold, so only 4 of them have to be complete.
 * - `kills`, with three gateways: one is killed during each wave. Every request ends in time, and nothing stays held.
 * There are 20 seeds, or N, and fewer of `kinds` and `kills`. The same seed results in the same wave. Means are printed,
 * and the worst seed in brackets; with `--details` also a line for each wave. The ledger verifies with drift 0. All parts
 * take about half an hour. WAVES_AT_ONCE (default 14) sets how many waves run at a time; a warning is printed if the
 * host is too slow for them.
 */
import { Argument } from 'commander';
import { createProgram, runProgram } from '#foundation/command-line';
import {
  listAmpleCases,
  listEqualCases,
  listKillCases,
  listKindCases,
  listVariedCases,
  MAX_TRUNCATED_SHARE,
  type WaveCase,
} from './holds/cases.ts';
import { describeWave, evaluateTruncatedShare, type HoldFinding, warnOfSlowness } from './holds/evaluate.ts';
import { proveFastWaves } from './holds/fast-waves.ts';
import { killGateway } from './holds/kill-gateway.ts';
import { runWaves, type WaveOutcome } from './holds/run-waves.ts';
import { HoldScene } from './holds/scene.ts';

const PARTS = ['fast', 'varied', 'equal', 'ample', 'kinds', 'kills'];
const GATEWAYS = [1, 3];

interface HoldOptions {
  readonly seeds: string;
  readonly gateways?: string;
  readonly details?: true;
}

const startedAt = performance.now();

const print = (line: string) => void process.stdout.write(`${line}\n`);

function report({ holds, line }: HoldFinding): void {
  const seconds = String(Math.round((performance.now() - startedAt) / 1_000)).padStart(4);
  print(`${holds ? 'passes' : 'FAILS '} ${seconds} s  ${line}`);
  if (!holds) process.exitCode = 1;
}

function listCases(parts: ReadonlySet<string>, gateways: number, seeds: number): readonly WaveCase[] {
  // The longest waves come first, so that shorter ones run during the last of them.
  return [
    ...(parts.has('varied') ? listVariedCases(seeds, gateways) : []),
    ...(parts.has('kinds') && gateways > 1 ? listKindCases(seeds) : []),
    ...(parts.has('equal') ? listEqualCases(seeds) : []),
    ...(parts.has('ample') ? listAmpleCases(seeds) : []),
    ...(parts.has('kills') && gateways > 1 ? listKillCases(seeds) : []),
  ];
}

async function prove(parts: ReadonlySet<string>, gateways: number, options: HoldOptions): Promise<void> {
  const seeds = Number(options.seeds);
  print(`${gateways} gateway(s), ${seeds} seeds`);
  const scene = await HoldScene.open(gateways);
  try {
    if (parts.has('fast')) for await (const finding of proveFastWaves(scene)) report(finding);
    const cases = listCases(parts, gateways, seeds);
    const outcomes = await proveCases(
      scene,
      cases.filter(({ isAlone }) => !isAlone),
      options,
    );
    const varied = outcomes.filter(({ wave }) => wave.name.startsWith('varied'));
    if (varied.length > 0) report(evaluateTruncatedShare(varied, MAX_TRUNCATED_SHARE));
    for (const waveCase of cases.filter(({ isAlone }) => isAlone)) await proveCases(scene, [waveCase], options);
    const { code, output } = await scene.cluster.runLedger('verify');
    report({ holds: code === 0, line: output.trim().split('\n').at(-1) ?? '' });
  } finally {
    await scene.close();
  }
}

/** Runs the waves of all cases together. Waves of a case that runs alone follow each other. */
async function proveCases(
  scene: HoldScene,
  cases: readonly WaveCase[],
  { details }: HoldOptions,
): Promise<readonly WaveOutcome[]> {
  const [{ isAlone, name } = {}] = cases;
  const runOptions = {
    ...(isAlone ? { atOnce: 1 } : {}),
    ...(name?.startsWith('kills') ? { disturb: killGateway } : {}),
  };
  const outcomes = await runWaves(
    scene,
    cases.flatMap(({ waves }) => waves),
    runOptions,
  );
  let first = 0;
  for (const waveCase of cases) {
    const caseOutcomes = outcomes.slice(first, first + waveCase.waves.length);
    first += caseOutcomes.length;
    print(`${waveCase.name}, ${caseOutcomes.length} seeds`);
    if (details) for (const outcome of caseOutcomes) print(`              ${describeWave(outcome)}`);
    for (const finding of waveCase.evaluate(caseOutcomes)) report(finding);
    const warning = warnOfSlowness(caseOutcomes);
    if (warning) print(warning);
  }
  return outcomes;
}

const program = createProgram('npm run prove:holds --', 'Proves that what providers bill is bounded by the balance.');
program.addArgument(new Argument('[part...]', 'By default all.').choices(PARTS).default(PARTS));
program.option('--seeds <number>', 'The number of seeds.', '20');
program.option('--gateways <number>', 'The number of gateways; by default first 1, then 3.');
program.option('--details', 'Prints a line for each wave.');
program.action(async (parts: readonly string[], options: HoldOptions) => {
  const counts = options.gateways ? [Number(options.gateways)] : GATEWAYS;
  for (const gateways of counts) await prove(new Set(parts), gateways, options);
});
await runProgram(program, process.argv.slice(2));
