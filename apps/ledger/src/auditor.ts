import {
  type DomainEvent,
  type Fee,
  type HoldSettled,
  idOf,
  isExplained,
  type PublishedRates,
  postings,
} from '#domain';
import { formatUsd, type PicoUsd, type Recorded } from '#kernel';

interface OpenHold {
  readonly amount: string;
  readonly expiresAt: string;
}

interface PublishedPrices {
  readonly rates: ReadonlyMap<string, PublishedRates>;
  readonly fees: readonly Fee[];
}

/** Judges the facts themselves, with a small ledger of its own that shares no code with the one that wrote them. */
export class Auditor {
  private readonly balances = new Map<string, { available: bigint; held: bigint }>();
  private readonly openHolds = new Map<string, OpenHold>();
  private readonly priceLists = new Map<string, PublishedPrices>();
  private total = 0n;
  private lines = 0;
  private charges = 0;
  private estimates = 0;

  constructor(private readonly report: (difference: string) => void) {}

  see(fact: Recorded<DomainEvent>): void {
    if (fact.type === 'PriceListPublished') {
      const { version, rates, fees = [] } = fact.data;
      const byEndpoint = new Map(rates.map((each) => [`${each.provider} ${each.model}`, each]));
      this.priceLists.set(version, { rates: byEndpoint, fees });
      return;
    }
    this.sumUp(fact);
    this.move(fact);
    if (fact.type === 'HoldSettled') this.recompute(fact.data);
  }

  summary(): string[] {
    const now = new Date().toISOString();
    const overdue = [...this.openHolds.values()].filter(({ expiresAt }) => expiresAt < now).length;
    return [
      `trial balance: ${this.lines} lines, sum ${formatUsd(this.total as PicoUsd)} USD`,
      `${this.balances.size} accounts, ${this.openHolds.size} holds open, ${overdue} of them past their expiry`,
      `${this.charges} charges computed again, ${this.estimates} of them estimates`,
    ];
  }

  private sumUp(fact: Recorded<DomainEvent>): void {
    let sum = 0n;
    for (const { amount } of postings(idOf(fact), fact)) {
      sum += amount;
      this.lines++;
    }
    this.total += sum;
    if (sum !== 0n) this.report(`the entry at position ${fact.position} sums to ${sum} pico-USD`);
  }

  /** The plain meaning of each fact for its account. */
  private move(fact: Recorded<DomainEvent>): void {
    switch (fact.type) {
      case 'CreditAdded':
        this.change(fact, BigInt(fact.data.amount) + BigInt(fact.data.bonus), 0n);
        break;
      case 'FundsHeld': {
        const { holdId, amount, expiresAt } = fact.data;
        if (this.openHolds.has(holdId)) this.report(`hold ${holdId} was made twice`);
        this.openHolds.set(holdId, { amount, expiresAt });
        this.change(fact, -BigInt(amount), BigInt(amount));
        break;
      }
      case 'HoldSettled':
      case 'HoldReleased':
      case 'HoldExpired': {
        const { holdId, held } = fact.data;
        const open = this.openHolds.get(holdId);
        if (!open) this.report(`hold ${holdId} ended without being open`);
        else if (open.amount !== held) this.report(`hold ${holdId} ended with another amount than it was made with`);
        this.openHolds.delete(holdId);
        const charged = fact.type === 'HoldSettled' ? BigInt(fact.data.charged) : 0n;
        this.change(fact, BigInt(held) - charged, -BigInt(held));
        break;
      }
    }
  }

  private change(fact: Recorded<DomainEvent>, available: bigint, held: bigint): void {
    const account = idOf(fact);
    const before = this.balances.get(account) ?? { available: 0n, held: 0n };
    const after = { available: before.available + available, held: before.held + held };
    this.balances.set(account, after);
    if (after.available < 0n) this.report(`account ${account} falls below zero at position ${fact.position}`);
  }

  private recompute({ charge, charged, held, holdId, query: { model } }: HoldSettled['data']): void {
    this.charges++;
    if (charge.estimated) this.estimates++;
    const list = this.priceLists.get(charge.priceList);
    const rates = list?.rates.get(`${charge.provider} ${model}`);
    if (!rates) this.report(`the charge of ${holdId} names price list ${charge.priceList}, which has no ${model}`);
    else if (!isExplained(charge, rates, list?.fees))
      this.report(`the charge of ${holdId} does not follow from its usage and prices`);
    const due = BigInt(charge.price) < BigInt(held) ? charge.price : held;
    if (charged !== due) this.report(`${charged} pico-USD were charged for ${holdId}, and ${due} were due`);
  }
}
