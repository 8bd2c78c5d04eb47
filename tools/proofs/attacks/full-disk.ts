import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { countCharges, waitForCharges } from '../clients/charged.ts';
import { waitUntil } from '../role-checks.ts';
import type { Attack, Finding } from './attack.ts';

/** Sizes of the disks in MiB: for the database's data, and for its write-ahead log, which should have its own disk. */
const [DATA, LOG] = [192, 1_200];
const AT_ONCE = 8;
/** Long enough to use up the free space within existing database files. Only then does the full disk have an effect. */
const LOAD_MS = 20_000;
/** Maximum time until the response of a request that cannot be served, or until the end of a stream. */
const MAX_RESPONSE_MS = 10_000;
/** Readiness with a full disk is measured this long before the load ends. */
const LAST_MS = 1_000;
const FUNDS_USD = 50;

/** The database's disk fills up under load, and is freed again. */
export const fullDisk: Attack = {
  name: 'full-disk',
  description: `the database's disk of ${DATA} MiB fills up under load, and is freed again`,
  async run(directory): Promise<Finding> {
    const data = path.join(directory, 'data');
    const mounted = [await mountTmpfs(data, DATA)];
    let cluster: ProofCluster | undefined;
    try {
      mounted.push(await moveLog(data));
      cluster = await ProofCluster.start(data, 1);
      return await measureFullDisk(cluster, path.join(data, 'full'));
    } finally {
      await cluster?.stop();
      await waitUntil(async () => unmountAll(mounted));
    }
  },
};

async function measureFullDisk(cluster: ProofCluster, ballast: string): Promise<Finding> {
  const customer = await cluster.createCustomer(FUNDS_USD);
  const load = new Load(cluster, customer);
  await load.run(LOAD_MS / 10);
  const before = load.completedIds.length;
  fillDisk(ballast);
  const loadRun = load.run(LOAD_MS);
  await pause(LOAD_MS - LAST_MS);
  const readyWhenFull = await isReady(cluster);
  const completedWhenFull = load.completedIds.length - before;
  await pause(2 * LAST_MS);
  rmSync(ballast);
  await loadRun;
  await waitUntil(() => isReady(cluster));
  const rejectedWhenFull = load.rejectedCount;
  await load.run(LOAD_MS / 10);
  // The reversal of a charge is a record with a negative price, so the history still adds up to what was paid.
  const { balanceUsd, historyUsd, heldUsd } = await waitForCharges(cluster, customer, FUNDS_USD * 1.05, {
    served: load.completedIds.length,
  });
  const charges = await countCharges(cluster, customer);
  const unexpectedIds = [...charges.keys()].filter(
    (id) => !load.completedIds.includes(id) && !load.interruptedIds.includes(id),
  );
  const mischargedIds = load.completedIds.filter((id) => charges.get(id) !== 1).length;
  const drift = (await cluster.runLedger('verify')).output.trim().split('\n').at(-1);
  const isCorrect = unexpectedIds.length === 0 && mischargedIds === 0 && balanceUsd === historyUsd && heldUsd === 0;
  const isInTime = load.maxResponseMs <= MAX_RESPONSE_MS;
  return {
    hasPassed:
      isCorrect &&
      isInTime &&
      load.other.length === 0 &&
      rejectedWhenFull > 0 &&
      load.rejectedCount === rejectedWhenFull &&
      !readyWhenFull &&
      drift === 'drift 0',
    measurements: [
      `when full: ${completedWhenFull} served, ${rejectedWhenFull} rejected with 503, ${load.other.length} other results${load.other[0] === undefined ? '' : ` (${load.other[0]})`}, ${readyWhenFull ? 'ready' : 'not ready'}`,
      `afterwards: ${load.rejectedCount - rejectedWhenFull} rejected`,
      `in total: ${load.completedIds.length} served, ${mischargedIds} of them not charged exactly once; ${load.interruptedIds.length} streams interrupted after their text, ${load.interruptedIds.filter((id) => charges.has(id)).length} of them charged; ${unexpectedIds.length} charged without a response; at most ${(load.maxResponseMs / 1_000).toFixed(1)} s until a response`,
      drift,
    ].join('; '),
  };
}

/** Sends concurrent requests and records their outcomes. */
class Load {
  /** Ids of the requests with a complete response. */
  readonly completedIds: string[] = [];
  /** Ids of the streams that ended with an error after their text. */
  readonly interruptedIds: string[] = [];
  /** The longest time from a request to the end of its response. */
  maxResponseMs = 0;
  private sentCount = 0;
  /** Rejections as documented: 503 with an error message and `retry-after`. */
  rejectedCount = 0;
  /** All other responses: status and the start of the body. */
  readonly other: string[] = [];

  constructor(
    private readonly cluster: ProofCluster,
    private readonly customer: Customer,
  ) {}

  async run(forMs: number): Promise<void> {
    const end = performance.now() + forMs;
    const sendUntilEnd = async () => {
      while (performance.now() < end) await this.sendRequest();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sendUntilEnd));
  }

  private async sendRequest(): Promise<void> {
    const stream = this.sentCount++ % 2 === 0;
    const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'hello' }], max_tokens: 16, stream };
    const sentAtMs = performance.now();
    const headers = { authorization: `Bearer ${this.customer.apiKey}`, 'content-type': 'application/json' };
    const request = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${this.cluster.gateways[0]}/v1/chat/completions`, request);
    const text = await response.text();
    this.maxResponseMs = Math.max(this.maxResponseMs, performance.now() - sentAtMs);
    const id = response.headers.get('x-request-id') ?? '';
    const isInterrupted = text.startsWith('data:') && text.includes('"error"');
    const { error } = (text.startsWith('data:') ? {} : JSON.parse(text)) as { error?: { message?: unknown } };
    if (response.status === 200) (isInterrupted ? this.interruptedIds : this.completedIds).push(id);
    else if (response.status === 503 && response.headers.has('retry-after') && typeof error?.message === 'string')
      this.rejectedCount++;
    else this.other.push(`${response.status} ${text.slice(0, 200)}`);
  }
}

async function isReady({ gateways }: ProofCluster): Promise<boolean> {
  return (await fetch(`${gateways[0]}/health/ready`)).ok;
}

/** @throws if this process is not allowed to mount */
async function mountTmpfs(mountPoint: string, mebibytes: number): Promise<string> {
  await mkdir(mountPoint, { mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'countinghouse', mountPoint], {
    stdio: 'pipe',
  });
  return mountPoint;
}

/**
 * Moves the write-ahead log to its own disk. If PostgreSQL could not write its log, it would end, and all roles too.
 */
async function moveLog(data: string): Promise<string> {
  await (await ProofCluster.start(data, 0)).stop();
  const walPath = path.join(data, 'postgres/pg_wal');
  const old = `${walPath}.old`;
  await rename(walPath, old);
  await mountTmpfs(walPath, LOG);
  execFileSync('cp', ['-a', `${old}/.`, walPath]);
  await rm(old, { recursive: true });
  return walPath;
}

/** Fills the disk until it has no space for another page. */
function fillDisk(file: string): void {
  for (const bytes of [1024 * 1024, 4096]) {
    try {
      for (;;) appendFileSync(file, Buffer.alloc(bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}

function unmountAll(mountPoints: string[]): boolean {
  try {
    while (mountPoints.length > 0) {
      execFileSync('umount', [mountPoints.at(-1) as string], { stdio: 'pipe' });
      mountPoints.pop();
    }
    return true;
  } catch {
    return false; // a process that is ending still uses the disk
  }
}
