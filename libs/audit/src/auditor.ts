import { type DomainEvent, toPostings } from '#domain';
import { formatUsd, type PicoUsd, type StoredEvent } from '#kernel';
import { AdjustmentAuditor } from './adjustment-auditor.ts';
import { ChallengeAuditor } from './challenge-auditor.ts';
import {
  type ChargeReading,
  type EventReading,
  readStoredEvent,
  readUpcastEvent,
  type TariffReading,
} from './event-readings.ts';
import { type JournalEntry, toExpectedEntry } from './expected-entry.ts';
import { recomputeCharge } from './recompute-charge.ts';

interface OpenHold {
  readonly amount: bigint;
  readonly expiresAt: string;
  /** Stream of the job that the hold was transferred to. */
  readonly owner?: string;
}

/** A charge is reversed within seconds of being stored. By then, far fewer charges than this have followed. */
const MAX_REVERSIBLE_CHARGES = 250_000;
/** Maximum number of hold ids in a line of the summary. */
const MAX_LISTED_HOLDS = 10;

/**
 * Audits the stored events with its own bookkeeping, event readers and arithmetic, which share no code with the
 * service. The results are compared with those of the upcasters and postings of the service.
 */
export class Auditor {
  /** Balances by stream name. */
  private readonly balances = new Map<string, { available: bigint; held: bigint }>();
  private readonly credits = new Set<string>();
  private readonly fees = new Set<string>();
  private readonly openHolds = new Map<string, OpenHold>();
  /** By stream of each running job with a transferred hold: what was charged, or undefined while the hold is open. */
  private readonly jobs = new Map<string, bigint | undefined>();
  /** Charged amounts of the latest charges, by hold. Only such an amount can be reversed, and only once. */
  private readonly charges = new Map<string, bigint>();
  private readonly priceLists = new Map<string, ReadonlyMap<string, TariffReading>>();
  private readonly holdsWithoutModel: string[] = [];
  private postingSum = 0n;
  private postingCount = 0;
  private chargeCount = 0;
  private estimateCount = 0;

  private readonly adjustmentAuditor: AdjustmentAuditor;
  private readonly challengeAuditor: ChallengeAuditor;

  constructor(private readonly report: (difference: string) => void) {
    this.adjustmentAuditor = new AdjustmentAuditor(report);
    this.challengeAuditor = new ChallengeAuditor(report);
  }

  /** @param current the same event after upcasting by the service */
  auditEvent(stored: StoredEvent, current: StoredEvent<DomainEvent>): void {
    const reading = this.readOrReport(() => readStoredEvent(stored));
    const upcast = this.readOrReport(() => readUpcastEvent(stored, current));
    if (upcast && serializeReading(upcast) !== serializeReading(reading))
      this.report(`the ${stored.type} at position ${stored.position} has another meaning after upcasting`);
    if (reading) {
      this.checkReading(reading, stored);
      if (isChallengeStream(stored)) this.challengeAuditor.check(stored.stream, reading);
    }
    this.compareEntry(
      reading ? toExpectedEntry(reading, isChallengeStream(stored) ? 'challenge' : 'customer') : new Map(),
      current,
    );
  }

  formatSummary(): string[] {
    const now = new Date().toISOString();
    const overdue = [...this.openHolds.values()].filter(({ expiresAt }) => expiresAt < now).length;
    const accounts = [...this.balances.keys()].filter((stream) => !isChallengeStream({ stream })).length;
    const { paid, amount } = this.challengeAuditor.owedTotals;
    const lines = [
      `trial balance: ${this.postingCount} lines, sum ${formatUsd(this.postingSum as PicoUsd)} USD`,
      `${accounts} accounts with postings, ${this.openHolds.size} holds open, ${overdue} of them past their expiry`,
      `${paid} challenges paid, ${formatUsd(amount as PicoUsd)} USD of them held or owed`,
      `${this.chargeCount} charges audited, ${this.estimateCount} of them estimates`,
    ];
    if (this.holdsWithoutModel.length === 0) return lines;
    const ellipsis = this.holdsWithoutModel.length > MAX_LISTED_HOLDS ? ', …' : '';
    const holdIds = this.holdsWithoutModel.slice(0, MAX_LISTED_HOLDS).join(', ');
    return [
      ...lines,
      `${this.holdsWithoutModel.length} absorbed charges name no model and were not recomputed: ${holdIds}${ellipsis}`,
    ];
  }

  private readOrReport(reader: () => EventReading | undefined): EventReading | undefined {
    try {
      return reader();
    } catch (error) {
      this.report(String((error as Error).message));
      return undefined;
    }
  }

  /** Applies an event to the bookkeeping, and reports contradictions. */
  private checkReading(reading: EventReading, event: StoredEvent): void {
    switch (reading.kind) {
      case 'prices':
        this.priceLists.set(reading.version, new Map(reading.tariffs.map((tariff) => [toTariffKey(tariff), tariff])));
        break;
      case 'credit': {
        const credit = `${event.stream} ${reading.id}`;
        if (this.credits.has(credit)) this.report(`credit ${reading.id} was booked twice`);
        this.credits.add(credit);
        this.adjustBalance(event, reading.paid + reading.bonus, 0n, reading.reversed);
        break;
      }
      case 'adjustment':
        this.adjustmentAuditor.check(event.stream, reading);
        this.adjustBalance(event, reading.amount, 0n);
        break;
      case 'fee':
        if (this.fees.has(reading.id)) this.report(`fee ${reading.id} was booked twice`);
        this.fees.add(reading.id);
        break;
      case 'topup':
      case 'excess':
        break;
      case 'hold': {
        const { holdId, amount, expiresAt } = reading;
        if (this.openHolds.has(holdId)) this.report(`hold ${holdId} was placed twice`);
        this.openHolds.set(holdId, { amount, expiresAt });
        this.adjustBalance(event, -amount, amount);
        break;
      }
      case 'extension': {
        const { holdId, amount, by } = reading;
        const open = this.openHolds.get(holdId);
        if (!open) this.report(`hold ${holdId} was extended without being open`);
        else if (open.amount + by !== amount || by <= 0n)
          this.report(`hold ${holdId} was extended by an amount that is not positive or does not add up`);
        else this.openHolds.set(holdId, { ...open, amount });
        this.adjustBalance(event, -by, by);
        break;
      }
      case 'kept': {
        const { holdId, owner, expiresAt } = reading;
        const open = this.openHolds.get(holdId);
        if (!open) this.report(`hold ${holdId} was transferred to a job without being open`);
        else this.openHolds.set(holdId, { ...open, owner, expiresAt });
        this.jobs.set(owner, undefined);
        break;
      }
      case 'end': {
        const { holdId, held, charged, charge } = reading;
        const open = this.openHolds.get(holdId);
        if (!open) this.report(`hold ${holdId} ended without being open`);
        else if (open.amount !== held) this.report(`hold ${holdId} ended with a different amount than it had`);
        this.openHolds.delete(holdId);
        if (open?.owner !== undefined) this.jobs.set(open.owner, charged);
        this.adjustBalance(event, held - charged, -held);
        if (!charge) break;
        this.recordCharge(holdId, charged);
        const due = charge.price < held ? charge.price : held;
        if (charged !== due) this.report(`${charged} pico-USD were charged for ${holdId}, but ${due} were due`);
        this.recompute(holdId, charge);
        break;
      }
      case 'reversal': {
        const { holdId, charged } = reading;
        if (this.charges.get(holdId) !== charged)
          this.report(`a charge of ${holdId} was reversed that it does not have`);
        this.charges.delete(holdId);
        this.adjustBalance(event, charged, 0n);
        break;
      }
      case 'absorbed':
        this.recompute(reading.holdId, reading.charge);
        break;
      case 'job':
        this.endJob(event.stream, reading.charged);
        break;
      case 'payment':
        this.adjustBalance(event, reading.owed, 0n);
        break;
      case 'forfeit':
        this.adjustBalance(event, -reading.amount, 0n);
        break;
      case 'offer':
      case 'cost':
        break;
      default:
        reading satisfies never;
    }
  }

  private recordCharge(holdId: string, charged: bigint): void {
    this.charges.set(holdId, charged);
    if (this.charges.size > MAX_REVERSIBLE_CHARGES) this.charges.delete(this.charges.keys().next().value as string);
  }

  /** A job to which no hold was transferred has paid nothing. */
  private endJob(job: string, charged: bigint): void {
    const paid = this.jobs.has(job) ? this.jobs.get(job) : 0n;
    if (paid === undefined) this.report(`${job} has ended, but its hold is open`);
    else if (paid !== charged) this.report(`${job} has ended with ${charged} pico-USD, but its hold with ${paid}`);
    this.jobs.delete(job);
  }

  /**
   * Applies the amounts of an event to a balance. Reports a debit that leaves the available balance negative, unless it
   * reverses a credit.
   */
  private adjustBalance({ stream, position }: StoredEvent, available: bigint, held: bigint, reversed = false): void {
    const before = this.balances.get(stream) ?? { available: 0n, held: 0n };
    const after = { available: before.available + available, held: before.held + held };
    this.balances.set(stream, after);
    if (after.available < 0n && available < 0n && !reversed)
      this.report(`${stream.replace('-', ' ')} is below zero at position ${position}`);
  }

  private recompute(holdId: string, { parts, cost, price, priceList }: ChargeReading): void {
    this.chargeCount++;
    if (parts.some(({ estimated }) => estimated)) this.estimateCount++;
    const list = this.priceLists.get(priceList);
    const partsWithModel = parts.filter(({ of }) => of !== null);
    if (partsWithModel.length < parts.length) this.holdsWithoutModel.push(holdId);
    for (const part of partsWithModel) {
      const tariff = list?.get(toTariffKey(part));
      const expected = tariff && recomputeCharge(part, tariff.lines);
      if (!tariff) this.report(`the charge of ${holdId} names price list ${priceList}, which has no ${part.of}`);
      else if (!expected) this.report(`the charge of ${holdId} has usage of ${part.of} without a cost or price`);
      else if (expected.cost !== part.cost || expected.price !== part.price)
        this.report(`the charge of ${holdId} does not follow from its usage and prices`);
    }
    const sumParts = (amount: 'cost' | 'price') => parts.reduce((sum, part) => sum + part[amount], 0n);
    if (sumParts('cost') !== cost || sumParts('price') !== price)
      this.report(`the charge of ${holdId} is not the sum of its items`);
  }

  /** Compares the postings of the service for an event with those of the auditor. */
  private compareEntry(expectedEntry: JournalEntry, event: StoredEvent<DomainEvent>): void {
    const actualEntry = new Map<string, bigint>();
    const owner = event.stream.replace(/^[^-]*-/, '');
    let sum = 0n;
    for (const posting of toPostings(event.stream, event)) {
      const name =
        posting.customer === null || posting.customer === owner ? posting.account : `${posting.account} of another`;
      actualEntry.set(name, (actualEntry.get(name) ?? 0n) + posting.amount);
      sum += posting.amount;
      this.postingCount++;
    }
    this.postingSum += sum;
    if (sum !== 0n) this.report(`the entry at position ${event.position} sums to ${sum} pico-USD`);
    for (const name of new Set([...actualEntry.keys(), ...expectedEntry.keys()])) {
      const [actual, expected] = [actualEntry.get(name) ?? 0n, expectedEntry.get(name) ?? 0n];
      if (actual !== expected)
        this.report(`the entry at position ${event.position} has ${actual} as ${name}, but ${expected} are due`);
    }
  }
}

function toTariffKey({ of, provider, creditor }: { of: string | null; provider: string; creditor: string }): string {
  return `${of} ${provider} ${creditor}`;
}

function isChallengeStream({ stream }: Pick<StoredEvent, 'stream'>): boolean {
  return stream.startsWith('challenge-');
}

function serializeReading(reading: EventReading | undefined): string {
  return JSON.stringify(reading, (_, value) => (typeof value === 'bigint' ? value.toString() : value)) ?? '';
}
