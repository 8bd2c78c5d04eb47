/**
 * `npm run prove:rolling [-- PART] [--rate N] [--short]`: all processes are replaced one after the other while HAProxy
 * sends 60 (or N) requests per second to three gateways, a fifth of them streams of 40 s. There are two projectors and
 * two sagas processes. The parts:
 * - `restarts [N]`: ten (or N) times, every process is restarted.
 * - `upgrade [BUILD]`: the release before this build starts, and this build replaces it. Then the release before replaces
 *   this build, and this build replaces it again. The release is the last one in infra/releases.json of another version,
 *   and is built from its commit. BUILD names another commit, or the directory of a build.
 * No request fails. Each response is complete and correct, and is charged once, with the usage that the provider
 * reported. The bill of the providers equals the ledger, which verifies with drift 0. Without PART both run, in about 40
 * minutes. With `--short`, streams take 5 s, and there is one restart. The Debian package of HAProxy is unpacked if
 * missing.
 */
import { Argument } from 'commander';
import { createProgram, runProgram } from '#foundation/command-line';
import { root } from '../processes.ts';
import { prepareReleaseBefore } from './rolling/release-before.ts';
import { print, reportLoad } from './rolling/report.ts';
import { RollingScene } from './rolling/scene.ts';

const RESTARTS = 10;
const [STREAM_MS, SHORT_STREAM_MS] = [40_000, 5_000];
const [BEFORE_MS, AFTER_MS] = [5_000, 5_000];

interface LoadOptions {
  readonly rate: string;
  readonly short?: true;
}

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Runs `replace` under load. @returns whether all guarantees hold */
async function proveUnderLoad(
  build: string,
  { rate, short }: LoadOptions,
  replace: (scene: RollingScene) => Promise<void>,
): Promise<boolean> {
  const scene = await RollingScene.open(build);
  try {
    const load = scene.startLoad(Number(rate), short ? SHORT_STREAM_MS : STREAM_MS);
    try {
      await sleep(BEFORE_MS);
      await replace(scene);
      await sleep(AFTER_MS);
    } finally {
      await load.stop();
    }
    return await reportLoad(scene, load);
  } finally {
    await scene.close();
  }
}

async function proveRestarts(count: number, options: LoadOptions): Promise<boolean> {
  print(`restarts: every process is restarted ${count} times`);
  return proveUnderLoad(root, options, async (scene) => {
    for (let i = 1; i <= count; i++) {
      await scene.replaceAll(root);
      print(`all processes were restarted ${i} times`);
    }
  });
}

async function proveUpgrade(selected: string | undefined, options: LoadOptions): Promise<boolean> {
  const before = await prepareReleaseBefore(selected);
  print(`upgrade: from ${before.name} to this build, back, and forward again`);
  return proveUnderLoad(before.directory, options, async (scene) => {
    await scene.replaceAll(root);
    print('upgraded');
    await scene.replaceAll(before.directory, 'back');
    print('rolled back');
    await scene.replaceAll(root);
    print('upgraded again');
  });
}

async function prove(part: string | undefined, argument: string | undefined, options: LoadOptions): Promise<void> {
  const results = [
    part === 'upgrade' || (await proveRestarts(Number(argument ?? (options.short ? 1 : RESTARTS)), options)),
    part === 'restarts' || (await proveUpgrade(argument, options)),
  ];
  if (results.includes(false)) process.exitCode = 1;
}

const program = createProgram(
  'npm run prove:rolling --',
  'Proves that processes are replaced without failed requests.',
);
program.addArgument(new Argument('[part]', 'By default both.').choices(['restarts', 'upgrade']));
program.argument('[restarts or build]', 'The number of restarts; or a commit or the directory of a build.');
program.option('--rate <number>', 'Requests per second.', '60');
program.option('--short', 'Streams take 5 s, and there is one restart.');
await runProgram(program.action(prove), process.argv.slice(2));
