/**
 * Kills or pauses processes at different times while videos of all `KINDS` are generated, and compares the results with
 * the provider's bill.
 */
import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import type { ChargeItem, DomainEvent } from '#domain';
import { type EventStore, formatUsd, money, type PicoUsd, parseUsd, START_POSITION, type StoredEvent } from '#kernel';
import { readVideoJobs, type VideoJobView } from '#projections';
import type { Customer, ProofCluster } from '../../cluster.ts';
import { root } from '../../processes.ts';
import { MODEL } from './load.ts';

const PRICE = 0.4025;
const FUNDED = 21;
/** Longer than a lease, which lasts eight seconds. */
const STOPPED_MS = 12_000;
/** Within this time, the hold of a killed gateway's request is released, and another gateway can serve the request. */
const RESPONSE_TIMEOUT_MS = 40_000;
const POLL_INTERVAL_MS = 50;

/**
 * Directives for the sandbox, and the statuses that a video may end with. In addition, every video may time out. That
 * happens if a fault interrupted its submission or the response was lost, unless a webhook reports its outcome.
 */
export const KINDS: readonly (readonly [directive: string, ends: readonly string[]])[] = [
  ['latency=100', ['completed']],
  ['latency=1500', ['completed']],
  ['latency=4000', ['completed']],
  ['fault=duplicate latency=400', ['completed']],
  ['fault=lost latency=700', ['completed']],
  ['fault=policy latency=200', ['failed']],
  ['fault=policy_billed latency=200', ['failed']],
  ['fault=error latency=200', ['failed']],
  ['fault=429', ['failed']],
  ['fault=html latency=100', ['failed']],
  ['fault=expired latency=100', ['failed']],
];

export type InjectedFault = 'killed' | 'stopped and woken';

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

interface RequestedVideo {
  readonly directive: string;
  readonly ends: readonly string[];
  readonly id: string;
}

interface VideoView {
  readonly status: string;
  readonly cost?: number;
  readonly error_code?: string;
  readonly data?: { readonly url: string };
}

/** Copies the catalogue with a deadline of one minute for all videos. @returns the directory of the copy */
export async function createShortDeadlineCatalogue(dataDir: string): Promise<string> {
  const directory = path.join(dataDir, 'catalogue');
  await cp(path.join(root, 'libs/catalogue/data'), directory, { recursive: true });
  const file = path.join(directory, 'videos.json');
  const models = JSON.parse(await readFile(file, 'utf8')) as object[];
  await writeFile(file, JSON.stringify(models.map((model) => ({ ...model, deadlineMinutes: 1 }))));
  return directory;
}

export class VideoKillProof {
  readonly problems: string[] = [];
  /** Numbers of videos by their state at the time of a fault, added up over all faults. */
  readonly statesAtFault = new Map<string, number>();
  jobCount = 0;
  /** The number of videos that timed out, for instance because it stayed unknown whether the provider accepted them. */
  timedOutCount = 0;
  private readonly rounds: {
    readonly customer: Customer;
    readonly videos: readonly RequestedVideo[];
    readonly when: string;
  }[] = [];

  constructor(
    private readonly cluster: ProofCluster,
    private readonly database: pg.Pool,
    private readonly store: Pick<EventStore, 'readAll'>,
  ) {}

  /** The gateway that was started last. */
  private get observer(): string {
    return this.cluster.gateways.at(-1) as string;
  }

  async runRound(victim: string, fault: InjectedFault, delayMs: number): Promise<void> {
    const customer = await this.cluster.createCustomer(FUNDED / 1.05);
    const when = `${victim} ${fault} after ${delayMs} ms`;
    const requests = KINDS.map(([directive, ends], i) => this.requestVideo(customer, `${when} ${i}`, directive, ends));
    await sleep(delayMs);
    await this.recordStates();
    await this.strike(victim, fault);
    this.rounds.push({ customer, videos: await Promise.all(requests), when });
  }

  /** Requests a video, and retries with the same Idempotency-Key until the status is 202, for at most 40 s. */
  private async requestVideo(
    customer: Customer,
    key: string,
    directive: string,
    ends: readonly string[],
  ): Promise<RequestedVideo> {
    const body = JSON.stringify({ model: MODEL, duration: 5, prompt: `[[sandbox ${directive}]]` });
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${customer.apiKey}`,
      'idempotency-key': key,
    };
    const deadline = performance.now() + RESPONSE_TIMEOUT_MS;
    for (let api = this.cluster.gateways[0] as string; performance.now() < deadline; api = this.observer) {
      // killed: the next gateway is tried
      const response = await fetch(`${api}/v1/videos`, { method: 'POST', headers, body }).catch(() => undefined);
      if (response?.status === 202) return { directive, ends, id: ((await response.json()) as { id: string }).id };
      await response?.arrayBuffer();
      await sleep(POLL_INTERVAL_MS);
    }
    this.problems.push(`${key}: no response`);
    return { directive, ends, id: '' };
  }

  private async recordStates(): Promise<void> {
    const { rows } = await this.database.query('select state, count(*)::int as n from books.video_jobs group by state');
    for (const { state, n } of rows) this.statesAtFault.set(state, (this.statesAtFault.get(state) ?? 0) + n);
  }

  private async strike(victim: string, fault: InjectedFault): Promise<void> {
    const victimProcess = this.cluster.processes.get(victim);
    if (!victimProcess) throw new Error(`no process is called ${victim}`);
    if (fault === 'killed') {
      await victimProcess.kill();
      this.cluster.processes.delete(victim);
      await this.cluster.startRole(victim.split(' ')[0] as string, victim);
      return;
    }
    process.kill(victimProcess.pid, 'SIGSTOP');
    await sleep(STOPPED_MS);
    process.kill(victimProcess.pid, 'SIGCONT');
  }

  /** Waits until no video is running, at most for `timeoutMs`, then checks every video. */
  async checkVideos(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const running = (await readVideoJobs(this.database)).filter(({ state }) => state !== 'open');
      if (running.length === 0) break;
      if (performance.now() > deadline) {
        for (const { jobId, state } of running) this.problems.push(`${jobId} is still ${state}`);
        break;
      }
      await sleep(POLL_INTERVAL_MS);
    }
    for (const { customer, videos, when } of this.rounds) await this.checkRound(customer, videos, when);
  }

  private async checkRound(customer: Customer, videos: readonly RequestedVideo[], when: string): Promise<void> {
    let completed = 0;
    const headers = { authorization: `Bearer ${customer.apiKey}` };
    for (const { id, directive, ends } of videos) {
      this.jobCount++;
      const video = (await (await fetch(`${this.observer}/v1/videos/${id}`, { headers })).json()) as VideoView;
      if (video.error_code === 'timeout') this.timedOutCount++;
      else if (!ends.includes(video.status)) this.problems.push(`${directive}, ${when}: ${JSON.stringify(video)}`);
      if (video.status !== 'completed') continue;
      completed++;
      const { pathname, search } = new URL(video.data?.url ?? '');
      const file = Buffer.from(await (await fetch(`${this.observer}${pathname}${search}`)).arrayBuffer());
      if (file.toString('latin1', 4, 8) !== 'ftyp') this.problems.push(`${directive}, ${when}: the file is not MP4`);
    }
    const { balance, held_usd } = await this.cluster.fetchBalance(customer);
    const due = Number((FUNDED - completed * PRICE).toFixed(6));
    if (balance !== due || held_usd !== 0)
      this.problems.push(`${when}: ${balance} USD and ${held_usd} held instead of ${due} after ${completed} videos`);
  }

  /**
   * Checks that bill lines that are missing in the ledger are listed as open costs. Open costs without a provider's id
   * are only counted. Then closes the open costs, and checks that ledger and bill agree.
   */
  async reconcile(print: (line: string) => void): Promise<void> {
    const open = await readVideoJobs(this.database);
    const items = await this.loadLedgerItems();
    const ledgerIds = new Set(items.map(({ vendorId }) => vendorId));
    const lines = await this.fetchBillLines();
    const missing = lines.filter(({ id }) => !ledgerIds.has(id));
    const cost = money.sum(items.map((item) => money.parseJsonAmount(item.cost)));
    const billed = money.sum(lines.map((line) => parseUsd(line.usd)));
    const missingCost = money.sum(missing.map((line) => parseUsd(line.usd)));
    print(`billed ${formatUsd(billed)} USD, in the ledger ${formatUsd(cost)}, ${open.length} costs are open`);
    if (billed - cost !== missingCost) this.problems.push('the ledger has a line of the bill with another amount');
    const unnamed = open.filter(({ vendorId }) => vendorId === undefined);
    const rest = missing.filter(({ id }) => !open.some(({ vendorId }) => vendorId === id));
    if (rest.length > unnamed.length)
      this.problems.push(`${rest.length - unnamed.length} lines of the bill are not listed as open costs`);
    for (const job of open) await this.closeJob(job, missing, rest);
    const closed = money.sum((await this.loadLedgerItems()).map((item) => money.parseJsonAmount(item.cost)));
    const after = billed - closed;
    print(`after closing them, the bill exceeds the ledger by ${formatUsd(after as PicoUsd)} USD`);
    if (after !== 0n) this.problems.push('the ledger differs from the bill');
  }

  private async closeJob(job: VideoJobView, missing: readonly Line[], rest: Line[]): Promise<void> {
    const line = job.vendorId === undefined ? rest.shift() : missing.find(({ id }) => id === job.vendorId);
    const { code, output } = await this.cluster.runLedger('jobs', 'close', job.jobId, '--cost', line?.usd ?? 'none');
    if (code !== 0) this.problems.push(`${job.jobId} was not closed: ${output}`);
  }

  private async loadLedgerItems(): Promise<readonly Pick<ChargeItem, 'vendorId' | 'cost'>[]> {
    const items: Pick<ChargeItem, 'vendorId' | 'cost'>[] = [];
    for await (const { events } of this.store.readAll(START_POSITION)) {
      for (const { type, data } of events as readonly StoredEvent<DomainEvent>[]) {
        if (type === 'HoldSettled' || type === 'ChargeAbsorbed') items.push(...data.charge.items);
        if (type === 'VideoCostClosed') items.push(data);
      }
    }
    return items;
  }

  private async fetchBillLines(): Promise<readonly Line[]> {
    return (await (await fetch(`${this.cluster.sandbox}/bill/lines`)).json()) as readonly Line[];
  }
}

interface Line {
  readonly id: string;
  readonly usd: string;
}
