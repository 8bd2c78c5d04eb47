import { type DomainEvent, toPostings } from '#domain';
import { formatUsd, type PicoUsd, type StoredEvent } from '#kernel';
import { ChallengeAudit } from './challenge-audit.ts';
import {
  type ChargeReading,
  type Reading,
  readStoredEvent,
  readUpcastEvent,
  type TariffReading,
} from './event-readings.ts';
import { recomputeCharge } from './recomputed.ts';

interface OpenHold {
  readonly amount: bigint;
  readonly expiresAt: string;
  /** The job that it is kept for. */
  readonly owner?: string;
}

/** Amounts by ledger account; a debit is positive. */
type Entry = ReadonlyMap<string, bigint>;

/** The most holds that a difference names. */
const MAX_NAMED = 10;

/**
 * Judges the facts as they were stored, with book-keeping, readers and arithmetic of its own. What the program makes of
 * the same facts, its upcasters and its postings, is compared with that.
 */
export class Auditor {
  /** By streams. */
  private readonly balances = new Map<string, { available: bigint; held: bigint }>();
  private readonly credits = new Set<string>();
  private readonly fees = new Set<string>();
  private readonly openHolds = new Map<string, OpenHold>();
  /** What jobs have paid whose own end has not been seen yet; undefined while their hold is open. */
  private readonly jobs = new Map<string, bigint | undefined>();
  private readonly priceLists = new Map<string, ReadonlyMap<string, TariffReading>>();
  private readonly unnamed: string[] = [];
  private total = 0n;
  private lines = 0;
  private charges = 0;
  private estimates = 0;

  private readonly challenges: ChallengeAudit;

  constructor(private readonly report: (difference: string) => void) {
    this.challenges = new ChallengeAudit(report);
  }

  /** @param today the same fact as the program reads it */
  see(stored: StoredEvent, today: StoredEvent<DomainEvent>): void {
    const reading = this.read(() => readStoredEvent(stored));
    const upcast = this.read(() => readUpcastEvent(stored, today));
    if (upcast && printed(upcast) !== printed(reading))
      this.report(`the ${stored.type} at position ${stored.position} says something else once it is upcast`);
    if (reading) {
      this.judge(reading, stored);
      if (isOfChallenge(stored)) this.challenges.judge(stored.stream, reading);
    }
    this.compare(reading ? entryOf(reading, isOfChallenge(stored) ? 'challenge' : 'customer') : new Map(), today);
  }

  summary(): string[] {
    const now = new Date().toISOString();
    const overdue = [...this.openHolds.values()].filter(({ expiresAt }) => expiresAt < now).length;
    const accounts = [...this.balances.keys()].filter((stream) => !isOfChallenge({ stream })).length;
    const { paid, amount } = this.challenges.owed;
    const lines = [
      `trial balance: ${this.lines} lines, sum ${formatUsd(this.total as PicoUsd)} USD`,
      `${accounts} accounts, ${this.openHolds.size} holds open, ${overdue} of them past their expiry`,
      `${paid} challenges paid, ${formatUsd(amount as PicoUsd)} USD of them held or owed`,
      `${this.charges} charges computed again, ${this.estimates} of them estimates`,
    ];
    if (this.unnamed.length === 0) return lines;
    const more = this.unnamed.length > MAX_NAMED ? ', …' : '';
    const named = this.unnamed.slice(0, MAX_NAMED).join(', ');
    return [
      ...lines,
      `${this.unnamed.length} absorbed charges name no model and were not computed again: ${named}${more}`,
    ];
  }

  private read(reader: () => Reading | undefined): Reading | undefined {
    try {
      return reader();
    } catch (error) {
      this.report(String((error as Error).message));
      return undefined;
    }
  }

  /** The plain meaning of a fact for its account. */
  private judge(reading: Reading, fact: StoredEvent): void {
    switch (reading.kind) {
      case 'prices':
        this.priceLists.set(reading.version, new Map(reading.listed.map((each) => [keyOf(each), each])));
        break;
      case 'credit': {
        const credit = `${fact.stream} ${reading.id}`;
        if (this.credits.has(credit)) this.report(`credit ${reading.id} was booked twice`);
        this.credits.add(credit);
        this.move(fact, reading.paid + reading.bonus, 0n, reading.reversed);
        break;
      }
      case 'fee':
        if (this.fees.has(reading.id)) this.report(`fee ${reading.id} was booked twice`);
        this.fees.add(reading.id);
        break;
      case 'rate':
        break;
      case 'hold': {
        const { holdId, amount, expiresAt } = reading;
        if (this.openHolds.has(holdId)) this.report(`hold ${holdId} was made twice`);
        this.openHolds.set(holdId, { amount, expiresAt });
        this.move(fact, -amount, amount);
        break;
      }
      case 'extension': {
        const { holdId, amount, by } = reading;
        const open = this.openHolds.get(holdId);
        if (!open) this.report(`hold ${holdId} was extended without being open`);
        else if (open.amount + by !== amount || by <= 0n)
          this.report(`hold ${holdId} was extended to another amount than it comes to`);
        else this.openHolds.set(holdId, { ...open, amount });
        this.move(fact, -by, by);
        break;
      }
      case 'kept': {
        const { holdId, owner, expiresAt } = reading;
        const open = this.openHolds.get(holdId);
        if (!open) this.report(`hold ${holdId} was kept for a job without being open`);
        else this.openHolds.set(holdId, { ...open, owner, expiresAt });
        this.jobs.set(owner, undefined);
        break;
      }
      case 'end': {
        const { holdId, held, charged, sale } = reading;
        const open = this.openHolds.get(holdId);
        if (!open) this.report(`hold ${holdId} ended without being open`);
        else if (open.amount !== held) this.report(`hold ${holdId} ended with another amount than it had`);
        this.openHolds.delete(holdId);
        if (open?.owner !== undefined) this.jobs.set(open.owner, charged);
        this.move(fact, held - charged, -held);
        if (!sale) break;
        const due = sale.price < held ? sale.price : held;
        if (charged !== due) this.report(`${charged} pico-USD were charged for ${holdId}, and ${due} were due`);
        this.recompute(holdId, sale);
        break;
      }
      case 'absorbed':
        this.recompute(reading.holdId, reading.sale);
        break;
      case 'job':
        this.endJob(fact.stream, reading.charged);
        break;
      case 'payment':
        this.move(fact, reading.owed, 0n);
        break;
      case 'forfeit':
        this.move(fact, -reading.amount, 0n);
        break;
      case 'offer':
      case 'cost':
        break;
      default:
        reading satisfies never;
    }
  }

  /** A job whose hold was never kept paid nothing. */
  private endJob(job: string, charged: bigint): void {
    const paid = this.jobs.has(job) ? this.jobs.get(job) : 0n;
    if (paid === undefined) this.report(`${job} has ended, and its hold is open`);
    else if (paid !== charged) this.report(`${job} has ended with ${charged} pico-USD, and its hold with ${paid}`);
    this.jobs.delete(job);
  }

  /** Only a credit that is taken back may leave less than nothing. */
  private move({ stream, position }: StoredEvent, available: bigint, held: bigint, reversed = false): void {
    const before = this.balances.get(stream) ?? { available: 0n, held: 0n };
    const after = { available: before.available + available, held: before.held + held };
    this.balances.set(stream, after);
    if (after.available < 0n && available < 0n && !reversed)
      this.report(`${stream.replace('-', ' ')} falls below zero at position ${position}`);
  }

  private recompute(holdId: string, { parts, cost, price, priceList }: ChargeReading): void {
    this.charges++;
    if (parts.some(({ estimated }) => estimated)) this.estimates++;
    const list = this.priceLists.get(priceList);
    const named = parts.filter(({ of }) => of !== null);
    if (named.length < parts.length) this.unnamed.push(holdId);
    for (const part of named) {
      const listed = list?.get(keyOf(part));
      const again = listed && recomputeCharge(part, listed.lines);
      if (!listed) this.report(`the charge of ${holdId} names price list ${priceList}, which has no ${part.of}`);
      else if (!again) this.report(`the charge of ${holdId} has something of ${part.of} that has no price`);
      else if (again.cost !== part.cost || again.price !== part.price)
        this.report(`the charge of ${holdId} does not follow from its usage and prices`);
    }
    const sumOf = (amount: 'cost' | 'price') => parts.reduce((sum, part) => sum + part[amount], 0n);
    if (sumOf('cost') !== cost || sumOf('price') !== price)
      this.report(`the charge of ${holdId} is not the sum of its items`);
  }

  /** What the program books of a fact, beside what the auditor does. */
  private compare(entry: Entry, fact: StoredEvent<DomainEvent>): void {
    const booked = new Map<string, bigint>();
    const owner = fact.stream.replace(/^[^-]*-/, '');
    let sum = 0n;
    for (const line of toPostings(fact.stream, fact)) {
      const name = line.customer === null || line.customer === owner ? line.account : `${line.account} of another`;
      booked.set(name, (booked.get(name) ?? 0n) + line.amount);
      sum += line.amount;
      this.lines++;
    }
    this.total += sum;
    if (sum !== 0n) this.report(`the entry at position ${fact.position} sums to ${sum} pico-USD`);
    for (const name of new Set([...booked.keys(), ...entry.keys()])) {
      const [is, must] = [booked.get(name) ?? 0n, entry.get(name) ?? 0n];
      if (is !== must)
        this.report(`the entry at position ${fact.position} books ${is} as ${name}, and ${must} are due`);
    }
  }
}

/** The auditor's own book-keeping. @param of whose money the stream is about */
function entryOf(reading: Reading, of: 'customer' | 'challenge'): Entry {
  const entry = new Map<string, bigint>();
  const book = (account: string, amount: bigint) => void entry.set(account, (entry.get(account) ?? 0n) + amount);
  switch (reading.kind) {
    case 'credit':
      book(`clearing:${reading.method}`, reading.paid);
      book(`bonus:${reading.method}`, reading.bonus);
      book(`${of}:available`, -(reading.paid + reading.bonus));
      break;
    case 'rate':
      book(`clearing:${reading.method}`, reading.market - reading.credited);
      book(`rates:${reading.method}`, reading.credited - reading.market);
      break;
    case 'fee':
      book(`fees:${reading.method}`, reading.amount);
      book(`clearing:${reading.method}`, -reading.amount);
      break;
    case 'hold':
      book(`${of}:available`, reading.amount);
      book(`${of}:held`, -reading.amount);
      break;
    case 'extension':
      book(`${of}:available`, reading.by);
      book(`${of}:held`, -reading.by);
      break;
    case 'end':
      book(`${of}:held`, reading.held);
      book(`${of}:available`, reading.charged - reading.held);
      if (reading.sale) bookSale(book, reading.sale, reading.surface, reading.charged);
      break;
    case 'absorbed':
      bookSale(book, reading.sale, 'late', 0n);
      break;
    case 'cost':
      book(`cost:${reading.provider}`, reading.cost);
      book(`payable:${reading.creditor}`, -reading.cost);
      break;
    case 'payment':
      book(`clearing:${reading.method}`, reading.worth);
      book(`rounding:${reading.method}`, reading.owed - reading.worth);
      book(`${of}:available`, -reading.owed);
      break;
    case 'forfeit':
      book(`${of}:available`, reading.amount);
      book('revenue:unclaimed', -reading.amount);
      break;
    case 'kept':
    case 'job':
    case 'offer':
    case 'prices':
      break;
    default:
      reading satisfies never;
  }
  return entry;
}

function bookSale(
  book: (account: string, amount: bigint) => void,
  { parts, price }: ChargeReading,
  surface: string,
  charged: bigint,
): void {
  for (const part of parts) {
    book(`revenue:${part.beside ? part.of : surface}`, -part.price);
    book(`cost:${part.provider}`, part.cost);
    book(`payable:${part.creditor}`, -part.cost);
  }
  book('overrun', price - charged);
}

function keyOf({ of, provider, creditor }: { of: string | null; provider: string; creditor: string }): string {
  return `${of} ${provider} ${creditor}`;
}

function isOfChallenge({ stream }: Pick<StoredEvent, 'stream'>): boolean {
  return stream.startsWith('challenge-');
}

function printed(reading: Reading | undefined): string {
  return JSON.stringify(reading, (_, value) => (typeof value === 'bigint' ? value.toString() : value)) ?? '';
}
