/**
 * `npm run prove:jobs`: videos of every kind are made, and while they are, the process that has them made or the gateway that
 * was asked is killed (SIGKILL), or stopped for longer than its lease and woken, at many moments. Every video ends, is paid once
 * or not at all, and what the vendor bills beyond the books is what `ledger -- jobs` lists as open; once that is closed, the
 * books are the bill. Then: 1,000 pending videos cost at most 1 % of a core over 60 s, and 10,000 are taken up and listed
 * within 5 s after a restart.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createLog, openFoundation, readSettings } from '#foundation';
import { ProofCluster } from '../cluster.ts';
import { type Blow, hastyCatalogue, Kills } from './jobs/kills.ts';
import { askFor, fundedFor, notTakenUp, shareOf, untilAllAre } from './jobs/load.ts';

const FEW = Number(process.env.FEW ?? 1_000);
const MANY = Number(process.env.MANY ?? 10_000);
const MEASURED_S = Number(process.env.MEASURED_S ?? 60);
const MOMENTS_MS = (process.env.MOMENTS ?? '0,30,60,100,150,250,400,700,1100,1600,2300').split(',').map(Number);
const MOST_SHARE = 0.01;
const RESUMED_WITHIN_MS = 5_000;
/** All of them come due meanwhile. */
const AWAY_MS = 100_000;
/** A minute until they are given up, and what their fetching takes. */
const ENDED_WITHIN_MS = 150_000;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);
const percent = (part: number) => `${(100 * part).toFixed(2)} % of a core`;
const seconds = (since: number) => `${((performance.now() - since) / 1_000).toFixed(2)} s`;

interface Proof {
  readonly cluster: ProofCluster;
  readonly books: pg.Pool;
  readonly store: Awaited<ReturnType<typeof openFoundation>>['store'];
}

/** Opens a cluster of its own and closes it. @returns whether it holds */
async function proof(gateways: number, prove: (proof: Proof, dataDir: string) => Promise<boolean>): Promise<boolean> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-jobs-'));
  const cluster = await ProofCluster.start(dataDir, gateways);
  const foundation = await openFoundation(readSettings({ DATA_DIR: dataDir }), createLog('warn'));
  const books = new pg.Pool({ connectionString: foundation.databaseUrl, max: 2 });
  try {
    const holds = await prove({ cluster, books, store: foundation.store }, dataDir);
    const { code, output } = await cluster.ledger('verify');
    print(output.trim());
    return holds && code === 0;
  } finally {
    await books.end();
    await foundation.close();
    await cluster.stop();
    await rm(dataDir, { recursive: true });
  }
}

async function proveKills({ cluster, books, store }: Proof, dataDir: string): Promise<boolean> {
  cluster.with({ CATALOGUE_DIR: await hastyCatalogue(dataDir) });
  const kills = new Kills(cluster, books, store);
  const restart = async () => {
    for (const name of ['sagas', 'gateway 1', 'gateway 2']) {
      await cluster.stopRole(name);
      await cluster.startRole(name.split(' ')[0] as string, name);
    }
  };
  const strikeAt = async (moments: readonly number[], blow: Blow, victims: readonly string[]) => {
    for (const moment of moments) for (const victim of victims) await kills.round(victim, blow, moment);
  };
  await restart();
  await strikeAt(MOMENTS_MS, 'killed', ['sagas', 'gateway 1']);
  cluster.with({ PUBLIC_BASE_URL: cluster.gateways.at(-1) as string });
  await cluster.stopRole('sagas');
  await cluster.startRole('sagas');
  await strikeAt(MOMENTS_MS, 'killed', ['sagas']);
  await strikeAt(MOMENTS_MS.slice(3, 6), 'stopped and woken', ['sagas']);
  await kills.judge(ENDED_WITHIN_MS);
  const hit = [...kills.hit].map(([state, times]) => `${state} ${times}`).join(', ');
  print(`${kills.jobs} videos, ${kills.givenUp} given up in doubt; when processes were hit they were: ${hit}`);
  await kills.reconcile(print);
  for (const problem of kills.problems) print(`PROBLEM: ${problem}`);
  return kills.problems.length === 0;
}

async function proveLoad({ cluster, books }: Proof): Promise<boolean> {
  const pid = () => cluster.processes.get('sagas')?.pid as number;
  await sleep(3_000);
  const idle = await shareOf(pid(), Math.min(MEASURED_S, 30));
  const customer = await fundedFor(cluster, MANY + 10);
  let started = performance.now();
  await askFor(cluster, FEW, customer);
  await untilAllAre(books, 'submitted', FEW, 60_000);
  print(`${FEW} videos were handed over in ${seconds(started)}`);
  const shares: number[] = [];
  for (let i = 0; i < 2; i++) shares.push(await shareOf(pid(), MEASURED_S));
  const most = Math.max(...shares) - idle;
  print(`sagas take ${percent(idle)} without videos, ${shares.map(percent).join(' and ')} with ${FEW} pending`);
  print(`so they cost ${percent(most)} at most; ${most <= MOST_SHARE ? 'holds' : 'TOO MUCH'}`);
  await askFor(cluster, MANY - FEW, customer);
  await untilAllAre(books, 'submitted', MANY, 300_000);
  await cluster.processes.get('sagas')?.kill();
  await sleep(AWAY_MS);
  const { rows } = await books.query('select now()::text as now');
  const due = await notTakenUp(books, rows[0].now);
  started = performance.now();
  await cluster.startRole('sagas');
  for (let left = due; left > 0; left = await notTakenUp(books, rows[0].now)) await sleep(25);
  const resumed = performance.now() - started;
  print(`${due} of ${MANY} were due, and all are taken up ${seconds(started)} after the start of sagas`);
  started = performance.now();
  const { output } = await cluster.ledger('jobs');
  const listed = output.split('\n').filter((line) => line.includes(' submitted ')).length;
  print(`${listed} are listed in ${seconds(started)}`);
  const inTime = resumed <= RESUMED_WITHIN_MS && performance.now() - started <= RESUMED_WITHIN_MS;
  return most <= MOST_SHARE && inTime && listed === MANY;
}

const chosen = process.env.PART;
if (chosen !== 'load' && !(await proof(2, proveKills))) process.exitCode = 1;
if (chosen !== 'kills' && !(await proof(1, proveLoad))) process.exitCode = 1;
