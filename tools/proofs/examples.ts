/**
 * `npm run prove:examples [-- SCRIPT…]`: runs the usual examples of the documentation of OpenAI, Anthropic and
 * OpenRouter with their SDKs, unmodified, against the build. Each example must end as docs/api.md says: as documented, or
 * with an error that names what is not served. Rejected requests must cost nothing, and the charges of all others must be
 * those in the query history.
 */
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { formatUsd } from '#kernel';
import { createAudioFile } from '../../libs/testing/src/inputs/media-files.ts';
import { type Customer, ProofCluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { waitForCharges } from './clients/charged.ts';
import { getVersion, install, PROOFS_DIR } from './clients/install.ts';
import { runCommand } from './clients/run.ts';
import type { Example } from './examples/example.ts';
import { DOCUMENTATIONS, type ExampleProgram } from './examples/list.ts';
import { findFault, parseOutcomes } from './examples/outcome.ts';

const CREDIT_USD = 50;
const RUN_WITHIN_MS = 300_000;
const SCRIPTS = path.join(root, 'tools/proofs/examples/scripts');

/** The files of the examples, in base64. */
const FILES = {
  PNG: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  PDF: Buffer.from(
    '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>>endobj\n' +
      '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n',
  ).toString('base64'),
  WAV: createAudioFile('wav', { seconds: 1 }).toString('base64'),
};

const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Prepares a script. @returns the command that runs it */
async function prepare({ script, sdk }: ExampleProgram): Promise<readonly string[]> {
  const folder = await install(sdk);
  if (sdk.pypi) return [path.join(folder, 'venv/bin/python'), path.join(SCRIPTS, script)];
  // Imports resolve from the directory of the packages.
  const modules = (await readdir(SCRIPTS)).filter((file) => file.endsWith('.mjs'));
  for (const file of modules) await copyFile(path.join(SCRIPTS, file), path.join(folder, file));
  return [process.execPath, path.join(folder, script)];
}

interface ExamplesRun {
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly command: readonly string[];
}

/** Runs examples in one process. @returns how their outcomes differ from the expected ones */
async function runExamples(
  { cluster, customer, command }: ExamplesRun,
  examples: readonly Example[],
): Promise<readonly string[]> {
  const homeDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-example-'));
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: homeDir,
    TMPDIR: homeDir,
    LANG: 'C.UTF-8',
    ...FILES,
    GATEWAY_URL: cluster.gateways[0] ?? '',
    API_KEY: customer.apiKey,
    EXAMPLES: JSON.stringify(examples.map(({ name }) => name)),
  };
  try {
    const { output } = await runCommand(command, { cwd: homeDir, env, timeoutMs: RUN_WITHIN_MS });
    await writeFile(path.join(PROOFS_DIR, `${path.basename(command.at(-1) ?? '')}.txt`), output);
    const outcomes = parseOutcomes(output);
    return examples
      .map((example) => findFault(example, outcomes.get(example.name)))
      .filter((fault) => !!fault) as string[];
  } finally {
    await rm(homeDir, { recursive: true, force: true });
  }
}

/** Runs the examples that are rejected, and then those that work, each with an account of its own. */
async function proveProgram(cluster: ProofCluster, program: ExampleProgram, all: readonly Example[]): Promise<boolean> {
  const command = await prepare(program);
  const faults: string[] = [];
  const counts: string[] = [];
  for (const isServed of [false, true]) {
    const examples = all.filter(
      ({ outcome, only = program.language }) => only === program.language && (outcome === 'works') === isServed,
    );
    const customer = await cluster.createCustomer(CREDIT_USD);
    const { balance } = await cluster.fetchBalance(customer);
    faults.push(...(await runExamples({ cluster, customer, command }, examples)));
    const { balanceUsd, historyUsd, heldUsd } = await waitForCharges(cluster, customer, balance, { served: 0 });
    if (balanceUsd !== historyUsd)
      faults.push(`charged ${formatUsd(balanceUsd)} USD, but the history has ${formatUsd(historyUsd)} USD`);
    if (heldUsd !== 0) faults.push(`${heldUsd} USD are still held`);
    if (balanceUsd > 0n !== isServed) faults.push(`the examples were charged ${formatUsd(balanceUsd)} USD`);
    counts.push(`${examples.length} ${isServed ? 'work' : 'are rejected'} for ${formatUsd(balanceUsd)} USD`);
  }
  print(`${program.script} ${getVersion(program.sdk)}: ${faults.length === 0 ? 'ok' : 'FAILED'}: ${counts.join(', ')}`);
  for (const fault of faults) print(`    ${fault}`);
  return faults.length === 0;
}

async function proveAll(dataDir: string, chosen: readonly string[]): Promise<boolean> {
  const cluster = await ProofCluster.startStandalone(dataDir, { LOG_LEVEL: 'info' });
  let allPassed = true;
  try {
    for (const { examples, programs } of DOCUMENTATIONS) {
      for (const program of programs) {
        if (chosen.length > 0 && !chosen.includes(program.script)) continue;
        allPassed = (await proveProgram(cluster, program, examples)) && allPassed;
      }
    }
    const { code, output } = await cluster.runLedger('verify');
    print(output.trim().split('\n').at(-1) ?? '');
    return allPassed && code === 0;
  } finally {
    await cluster.stop();
  }
}

// Scripts run in their own process groups, which Ctrl-C does not reach. They are ended when this process exits.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-examples-'));
if (!(await proveAll(dataDir, process.argv.slice(2)))) process.exitCode = 1;
await rm(dataDir, { recursive: true });
