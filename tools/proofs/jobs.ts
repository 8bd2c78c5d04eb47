/**
 * `npm run prove:jobs`: while videos with and without faults are generated, the sagas or a gateway are killed, or the
 * sagas are paused for longer than a lease, at different times. Every video ends, and is paid once or not at all. Lines
 * of the provider's bill that are missing in the ledger are listed as open costs by `ledger -- jobs`. Once these costs
 * are closed, ledger and bill agree. Then 1,000 pending videos use at most 1 % of a core over 60 s. After a restart
 * with 10,000 pending videos, those that are due are resumed within 5 s, and all are listed within 5 s.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createLog, openFoundation, readSettings } from '#foundation';
import { ProofCluster } from '../cluster.ts';
import { createShortDeadlineCatalogue, type InjectedFault, VideoKillProof } from './jobs/kills.ts';
import {
  countOverdueVideos,
  createFundedCustomer,
  measureCpuShare,
  requestVideos,
  waitUntilAllInState,
} from './jobs/load.ts';

const FEW = Number(process.env.FEW ?? 1_000);
const MANY = Number(process.env.MANY ?? 10_000);
const MEASURED_S = Number(process.env.MEASURED_S ?? 60);
const MOMENTS_MS = (process.env.MOMENTS ?? '0,30,60,100,150,250,400,700,1100,1600,2300').split(',').map(Number);
const MAX_CPU_SHARE = 0.01;
const RESUMED_WITHIN_MS = 5_000;
/** Long enough for all pending videos to become due. */
const DOWNTIME_MS = 100_000;
/** The deadline of videos, which is one minute in this proof, and the time to fetch their files. */
const ENDED_WITHIN_MS = 150_000;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);
const formatPercent = (part: number) => `${(100 * part).toFixed(2)} % of a core`;
const formatSecondsSince = (since: number) => `${((performance.now() - since) / 1_000).toFixed(2)} s`;

interface Proof {
  readonly cluster: ProofCluster;
  readonly database: pg.Pool;
  readonly store: Awaited<ReturnType<typeof openFoundation>>['store'];
}

/** Runs a proof on its own cluster. @returns whether the proof passes and the ledger verifies */
async function runProof(
  gateways: number,
  prove: (proof: Proof, dataDir: string) => Promise<boolean>,
): Promise<boolean> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-jobs-'));
  const cluster = await ProofCluster.start(dataDir, gateways);
  const foundation = await openFoundation(readSettings({ DATA_DIR: dataDir }), createLog('warn'));
  const database = new pg.Pool({ connectionString: foundation.databaseUrl, max: 2 });
  try {
    const holds = await prove({ cluster, database, store: foundation.store }, dataDir);
    const { code, output } = await cluster.runLedger('verify');
    print(output.trim());
    return holds && code === 0;
  } finally {
    await database.end();
    await foundation.close();
    await cluster.stop();
    await rm(dataDir, { recursive: true });
  }
}

async function proveKills({ cluster, database, store }: Proof, dataDir: string): Promise<boolean> {
  cluster.addSettings({ CATALOGUE_DIR: await createShortDeadlineCatalogue(dataDir) });
  const kills = new VideoKillProof(cluster, database, store);
  const restart = async () => {
    for (const name of ['sagas', 'gateway 1', 'gateway 2']) {
      await cluster.stopRole(name);
      await cluster.startRole(name.split(' ')[0] as string, name);
    }
  };
  const runRounds = async (moments: readonly number[], fault: InjectedFault, victims: readonly string[]) => {
    for (const delayMs of moments) for (const victim of victims) await kills.runRound(victim, fault, delayMs);
  };
  await restart();
  await runRounds(MOMENTS_MS, 'killed', ['sagas', 'gateway 1']);
  cluster.addSettings({ PUBLIC_BASE_URL: cluster.gateways.at(-1) as string });
  await cluster.stopRole('sagas');
  await cluster.startRole('sagas');
  await runRounds(MOMENTS_MS, 'killed', ['sagas']);
  await runRounds(MOMENTS_MS.slice(3, 6), 'stopped and woken', ['sagas']);
  await kills.checkVideos(ENDED_WITHIN_MS);
  const hit = [...kills.statesAtFault].map(([state, times]) => `${state} ${times}`).join(', ');
  print(`${kills.jobCount} videos, ${kills.timedOutCount} timed out; states at the time of a fault: ${hit}`);
  await kills.reconcile(print);
  for (const problem of kills.problems) print(`PROBLEM: ${problem}`);
  return kills.problems.length === 0;
}

async function proveLoad({ cluster, database }: Proof): Promise<boolean> {
  const pid = () => cluster.processes.get('sagas')?.pid as number;
  await sleep(3_000);
  const idle = await measureCpuShare(pid(), Math.min(MEASURED_S, 30));
  const customer = await createFundedCustomer(cluster, MANY + 10);
  let started = performance.now();
  await requestVideos(cluster, FEW, customer);
  await waitUntilAllInState(database, 'submitted', FEW, 60_000);
  print(`${FEW} videos were submitted in ${formatSecondsSince(started)}`);
  const shares: number[] = [];
  for (let i = 0; i < 2; i++) shares.push(await measureCpuShare(pid(), MEASURED_S));
  const maxShare = Math.max(...shares) - idle;
  print(
    `sagas use ${formatPercent(idle)} without videos, ${shares.map(formatPercent).join(' and ')} with ${FEW} pending`,
  );
  print(`pending videos use ${formatPercent(maxShare)}; ${maxShare <= MAX_CPU_SHARE ? 'allowed' : 'TOO MUCH'}`);
  await requestVideos(cluster, MANY - FEW, customer);
  await waitUntilAllInState(database, 'submitted', MANY, 300_000);
  await cluster.processes.get('sagas')?.kill();
  await sleep(DOWNTIME_MS);
  const { rows } = await database.query('select now()::text as now');
  const due = await countOverdueVideos(database, rows[0].now);
  started = performance.now();
  await cluster.startRole('sagas');
  for (let remaining = due; remaining > 0; remaining = await countOverdueVideos(database, rows[0].now)) await sleep(25);
  const resumed = performance.now() - started;
  print(`${due} of ${MANY} were due, and all were resumed ${formatSecondsSince(started)} after the start of sagas`);
  started = performance.now();
  const { output } = await cluster.runLedger('jobs');
  const listedCount = output.split('\n').filter((line) => line.includes(' submitted ')).length;
  print(`${listedCount} were listed in ${formatSecondsSince(started)}`);
  const inTime = resumed <= RESUMED_WITHIN_MS && performance.now() - started <= RESUMED_WITHIN_MS;
  return maxShare <= MAX_CPU_SHARE && inTime && listedCount === MANY;
}

const chosen = process.env.PART;
if (chosen !== 'load' && !(await runProof(2, proveKills))) process.exitCode = 1;
if (chosen !== 'kills' && !(await runProof(1, proveLoad))) process.exitCode = 1;
