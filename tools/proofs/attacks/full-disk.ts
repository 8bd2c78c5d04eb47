import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { chargesOf } from '../clients/charged.ts';
import { until } from '../works.ts';
import type { Attack, Finding } from './attack.ts';

/** In MiB: of what the database keeps, and of its log, which has a disk of its own, as where the two are kept well. */
const [DATA, LOG] = [192, 1_200];
const AT_ONCE = 8;
/** So that what is there may be used up before it is full. */
const ASKED_FOR_MS = 20_000;
/** Of that, when it is judged. */
const LAST_MS = 1_000;
const FUNDS_USD = 50;

/** A disk is filled while requests are paid from it, and gets room again. */
export const fullDisk: Attack = {
  name: 'full-disk',
  what: `the disk of the database, of ${DATA} MiB, fills up under load, and gets room again`,
  async run(directory): Promise<Finding> {
    const data = path.join(directory, 'data');
    const mounted = [await mountAt(data, DATA)];
    let cluster: ProofCluster | undefined;
    try {
      mounted.push(await moveLog(data));
      cluster = await ProofCluster.start(data, 1);
      return await tried(cluster, path.join(data, 'full'));
    } finally {
      await cluster?.stop();
      await until(async () => unmounted(mounted));
    }
  },
};

async function tried(cluster: ProofCluster, ballast: string): Promise<Finding> {
  const customer = await cluster.customer(FUNDS_USD);
  const load = new Load(cluster, customer);
  await load.run(ASKED_FOR_MS / 10);
  const before = load.answered.length;
  fill(ballast);
  const asking = load.run(ASKED_FOR_MS);
  await pause(ASKED_FOR_MS - LAST_MS);
  const readyWhenFull = await isReady(cluster);
  const answeredWhenFull = load.answered.length - before;
  await pause(2 * LAST_MS);
  rmSync(ballast);
  await asking; // answers wait with their charges
  await until(() => isReady(cluster));
  const refused = load.refused;
  await load.run(ASKED_FOR_MS / 10);
  const areShown = async () => (await chargesOf(cluster, customer)).size >= load.answered.length;
  await until(areShown).catch(() => {}); // the figures say what is missing
  const charges = await chargesOf(cluster, customer);
  const notOnce = load.answered.filter((id) => charges.get(id) !== 1).length;
  const drift = (await cluster.ledger('verify')).output.trim().split('\n').at(-1);
  const isWell = load.other.length === 0 && notOnce === 0 && charges.size === load.answered.length;
  return {
    held: isWell && refused > 0 && load.refused === refused && !readyWhenFull && drift === 'drift 0',
    measured: [
      `when full ${answeredWhenFull} answered, ${refused} refused with 503, ${load.other.length} otherwise${load.other[0] === undefined ? '' : ` (${load.other[0]})`}, ${readyWhenFull ? 'ready' : 'not ready'}`,
      `then all answered but ${load.refused - refused}`,
      `${load.answered.length} answered in all, ${charges.size} charged, ${notOnce} of them not once`,
      drift,
    ].join('; '),
  };
}

/** Requests, many at a time, and what came of them. */
class Load {
  /** Request ids of whole answers. */
  readonly answered: string[] = [];
  /** As documented: 503, an error and when to try again. */
  refused = 0;
  readonly other: string[] = [];

  constructor(
    private readonly cluster: ProofCluster,
    private readonly customer: Customer,
  ) {}

  async run(forMs: number): Promise<void> {
    const end = performance.now() + forMs;
    const ask = async () => {
      while (performance.now() < end) await this.ask();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, ask));
  }

  private async ask(): Promise<void> {
    const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'hello' }], max_tokens: 16 };
    const headers = { authorization: `Bearer ${this.customer.apiKey}`, 'content-type': 'application/json' };
    const request = { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await fetch(`${this.cluster.gateways[0]}/v1/chat/completions`, request);
    const text = await answer.text();
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    if (answer.status === 200) this.answered.push(answer.headers.get('x-request-id') ?? '');
    else if (answer.status === 503 && answer.headers.has('retry-after') && typeof error?.message === 'string')
      this.refused++;
    else this.other.push(`${answer.status} ${text.slice(0, 200)}`);
  }
}

async function isReady({ gateways }: ProofCluster): Promise<boolean> {
  return (await fetch(`${gateways[0]}/health/ready`)).ok;
}

/** @throws where this process may not */
async function mountAt(place: string, mebibytes: number): Promise<string> {
  await mkdir(place, { mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'countinghouse', place], {
    stdio: 'pipe',
  });
  return place;
}

/** PostgreSQL ends when there is no room for its log, and its processes with it: that would be another story. */
async function moveLog(data: string): Promise<string> {
  await (await ProofCluster.start(data, 0)).stop();
  const place = path.join(data, 'postgres/pg_wal');
  const old = `${place}.old`;
  await rename(place, old);
  await mountAt(place, LOG);
  execFileSync('cp', ['-a', `${old}/.`, place]);
  await rm(old, { recursive: true });
  return place;
}

/** Until not one page more has room. */
function fill(file: string): void {
  for (const bytes of [1024 * 1024, 4096]) {
    try {
      for (;;) appendFileSync(file, Buffer.alloc(bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}

function unmounted(places: string[]): boolean {
  try {
    while (places.length > 0) {
      execFileSync('umount', [places.at(-1) as string], { stdio: 'pipe' });
      places.pop();
    }
    return true;
  } catch {
    return false; // something ends there still
  }
}
