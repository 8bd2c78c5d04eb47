/** Processes are killed at every step of videos of every kind, and what became of each is compared with the vendor's bill. */
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
/** A lease lasts ten seconds. */
const STOPPED_MS = 12_000;
/** What was held for a request whose gateway has died is free by then, and it may be served again. */
const ANSWERED_WITHIN_MS = 40_000;
const LOOK_AGAIN_MS = 50;

/**
 * What the sandbox is told, and what comes of it; but a video whose handing over was hit, or whose answer was lost, is given up
 * at its deadline where no web hook resolves that.
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

export type Blow = 'killed' | 'stopped and woken';

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

interface Asked {
  readonly directive: string;
  readonly ends: readonly string[];
  readonly id: string;
}

interface Shown {
  readonly status: string;
  readonly cost?: number;
  readonly error_code?: string;
  readonly data?: { readonly url: string };
}

/** Models as they are shipped, whose videos are given up after a minute. */
export async function hastyCatalogue(dataDir: string): Promise<string> {
  const directory = path.join(dataDir, 'catalogue');
  await cp(path.join(root, 'libs/catalogue/data'), directory, { recursive: true });
  const file = path.join(directory, 'videos.json');
  const models = JSON.parse(await readFile(file, 'utf8')) as object[];
  await writeFile(file, JSON.stringify(models.map((model) => ({ ...model, deadlineMinutes: 1 }))));
  return directory;
}

export class Kills {
  readonly problems: string[] = [];
  /** What videos were at when a process was hit. */
  readonly hit = new Map<string, number>();
  jobs = 0;
  /** Of them, those of which it was never known whether their vendor had them. */
  givenUp = 0;
  private readonly rounds: { readonly customer: Customer; readonly asked: readonly Asked[]; readonly when: string }[] =
    [];

  constructor(
    private readonly cluster: ProofCluster,
    private readonly books: pg.Pool,
    private readonly store: Pick<EventStore, 'readAll'>,
  ) {}

  /** The gateway that is never hit. */
  private get observer(): string {
    return this.cluster.gateways.at(-1) as string;
  }

  async round(victim: string, blow: Blow, moment: number): Promise<void> {
    const customer = await this.cluster.customer(FUNDED / 1.05);
    const when = `${victim} ${blow} after ${moment} ms`;
    const asking = KINDS.map(([directive, ends], i) => this.ask(customer, `${when} ${i}`, directive, ends));
    await sleep(moment);
    await this.note();
    await this.strike(victim, blow);
    this.rounds.push({ customer, asked: await Promise.all(asking), when });
  }

  /** Again, where the gateway ends before it answers: with the same key it is the same video. */
  private async ask(customer: Customer, key: string, directive: string, ends: readonly string[]): Promise<Asked> {
    const body = JSON.stringify({ model: MODEL, duration: 5, prompt: `[[sandbox ${directive}]]` });
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${customer.apiKey}`,
      'idempotency-key': key,
    };
    const deadline = performance.now() + ANSWERED_WITHIN_MS;
    for (let api = this.cluster.gateways[0] as string; performance.now() < deadline; api = this.observer) {
      const answer = await fetch(`${api}/v1/videos`, { method: 'POST', headers, body }).catch(() => undefined);
      if (answer?.status === 202) return { directive, ends, id: ((await answer.json()) as { id: string }).id };
      await answer?.arrayBuffer();
      await sleep(LOOK_AGAIN_MS);
    }
    this.problems.push(`${key}: no answer`);
    return { directive, ends, id: '' };
  }

  private async note(): Promise<void> {
    const { rows } = await this.books.query('select state, count(*)::int as n from books.video_jobs group by state');
    for (const { state, n } of rows) this.hit.set(state, (this.hit.get(state) ?? 0) + n);
  }

  private async strike(victim: string, blow: Blow): Promise<void> {
    const found = this.cluster.processes.get(victim);
    if (!found) throw new Error(`there is no ${victim}`);
    if (blow === 'killed') {
      await found.kill();
      this.cluster.processes.delete(victim);
      await this.cluster.startRole(victim.split(' ')[0] as string, victim);
      return;
    }
    process.kill(found.pid, 'SIGSTOP');
    await sleep(STOPPED_MS);
    process.kill(found.pid, 'SIGCONT');
  }

  /** Waits until nothing is made any more, and judges every video. */
  async judge(withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const running = (await readVideoJobs(this.books)).filter(({ state }) => state !== 'open');
      if (running.length === 0) break;
      if (performance.now() > deadline) {
        for (const { jobId, state } of running) this.problems.push(`${jobId} is ${state} for ever`);
        break;
      }
      await sleep(LOOK_AGAIN_MS);
    }
    for (const { customer, asked, when } of this.rounds) await this.judgeRound(customer, asked, when);
  }

  private async judgeRound(customer: Customer, asked: readonly Asked[], when: string): Promise<void> {
    let completed = 0;
    const headers = { authorization: `Bearer ${customer.apiKey}` };
    for (const { id, directive, ends } of asked) {
      this.jobs++;
      const shown = (await (await fetch(`${this.observer}/v1/videos/${id}`, { headers })).json()) as Shown;
      if (shown.error_code === 'timeout') this.givenUp++;
      else if (!ends.includes(shown.status)) this.problems.push(`${directive}, ${when}: ${JSON.stringify(shown)}`);
      if (shown.status !== 'completed') continue;
      completed++;
      const { pathname, search } = new URL(shown.data?.url ?? '');
      const file = Buffer.from(await (await fetch(`${this.observer}${pathname}${search}`)).arrayBuffer());
      if (file.toString('latin1', 4, 8) !== 'ftyp') this.problems.push(`${directive}, ${when}: its file is no video`);
    }
    const { balance, held_usd } = await this.cluster.balance(customer);
    const due = Number((FUNDED - completed * PRICE).toFixed(6));
    if (balance !== due || held_usd !== 0)
      this.problems.push(`${when}: ${balance} USD and ${held_usd} held instead of ${due} after ${completed} videos`);
  }

  /** What the vendor bills and the ledger has not must be what is listed as open, line by line. Then that is closed. */
  async reconcile(print: (line: string) => void): Promise<void> {
    const open = await readVideoJobs(this.books);
    const items = await this.itemsInBooks();
    const known = new Set(items.map(({ vendorId }) => vendorId));
    const lines = await this.bill();
    const missing = lines.filter(({ id }) => !known.has(id));
    const cost = money.sum(items.map((item) => money.parseJsonAmount(item.cost)));
    const billed = money.sum(lines.map((line) => parseUsd(line.usd)));
    const left = money.sum(missing.map((line) => parseUsd(line.usd)));
    print(`billed ${formatUsd(billed)} USD, in the books ${formatUsd(cost)}, ${open.length} costs are open`);
    if (billed - cost !== left) this.problems.push('a line of the bill is in the books with another amount');
    const unnamed = open.filter(({ vendorId }) => vendorId === undefined);
    const rest = missing.filter(({ id }) => !open.some(({ vendorId }) => vendorId === id));
    if (rest.length > unnamed.length)
      this.problems.push(`${rest.length - unnamed.length} lines of the bill are not open`);
    for (const job of open) await this.close(job, missing, rest);
    const closed = money.sum((await this.itemsInBooks()).map((item) => money.parseJsonAmount(item.cost)));
    const after = billed - closed;
    print(`once they are closed, the bill is ${formatUsd(after as PicoUsd)} USD more than the books`);
    if (after !== 0n) this.problems.push('the books differ from the bill');
  }

  private async close(job: VideoJobView, missing: readonly Line[], rest: Line[]): Promise<void> {
    const line = job.vendorId === undefined ? rest.shift() : missing.find(({ id }) => id === job.vendorId);
    const { code, output } = await this.cluster.ledger('jobs', 'close', job.jobId, '--cost', line?.usd ?? 'none');
    if (code !== 0) this.problems.push(`${job.jobId} was not closed: ${output}`);
  }

  private async itemsInBooks(): Promise<readonly Pick<ChargeItem, 'vendorId' | 'cost'>[]> {
    const items: Pick<ChargeItem, 'vendorId' | 'cost'>[] = [];
    for await (const { events } of this.store.readAll(START_POSITION)) {
      for (const { type, data } of events as readonly StoredEvent<DomainEvent>[]) {
        if (type === 'HoldSettled' || type === 'ChargeAbsorbed') items.push(...data.charge.items);
        if (type === 'VideoCostClosed') items.push(data);
      }
    }
    return items;
  }

  private async bill(): Promise<readonly Line[]> {
    return (await (await fetch(`${this.cluster.sandbox}/bill/lines`)).json()) as readonly Line[];
  }
}

interface Line {
  readonly id: string;
  readonly usd: string;
}
