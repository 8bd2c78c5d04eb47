import { type DomainEvent, idOf, instantIn, postings } from '#domain';
import { StartError } from '#infra';
import { type FactReader, formatUsd, money, type PicoUsd, type Recorded, START, ZERO } from '#kernel';

/** Returns whether a fact belongs to the books as of some moment. */
type Within = (fact: Recorded) => boolean;

/** Prints the balance of every account and the trial balance as they were at a position or a booking time. */
export async function replay(
  store: FactReader,
  until: string | undefined,
  print: (line: string) => void,
): Promise<void> {
  const within = bound(until);
  const books = new Books();
  for await (const { events } of store.history(START)) for (const fact of events) if (within(fact)) books.book(fact);
  books.print(print);
}

function bound(until: string | undefined): Within {
  if (until === undefined) return () => true;
  if (/^\d+$/.test(until)) {
    const position = BigInt(until);
    return (fact) => fact.position <= position;
  }
  const instant = instantIn(until);
  if (instant === undefined) throw new StartError('--until takes a position or an ISO 8601 time.');
  return (fact) => fact.recordedAt <= instant;
}

/** Balances by account, from postings alone. */
class Books {
  private readonly house = new Map<string, bigint>();
  private readonly customers = new Map<string, { available: bigint; held: bigint }>();
  private facts = 0;
  private last = START;

  book(recorded: Recorded): void {
    const fact = recorded as Recorded<DomainEvent>;
    this.facts++;
    this.last = fact.position;
    for (const { account, customer, amount } of postings(idOf(fact), fact)) {
      this.house.set(account, (this.house.get(account) ?? 0n) + amount);
      if (customer === null) continue;
      const balance = this.customers.get(customer) ?? { available: 0n, held: 0n };
      this.customers.set(customer, balance);
      if (account === 'customer:available') balance.available -= amount;
      else balance.held -= amount;
    }
  }

  print(print: (line: string) => void): void {
    const moment = this.facts === 0 ? 'the beginning' : `position ${this.last}`;
    print(`As of ${moment}: ${this.facts} facts, ${this.customers.size} accounts with money`);
    print('');
    print(columns('account', 'available USD', 'held USD'));
    for (const [customer, { available, held }] of [...this.customers].sort(([a], [b]) => (a < b ? -1 : 1))) {
      print(columns(customer, formatUsd(available as PicoUsd), formatUsd(held as PicoUsd)));
    }
    print('');
    print(columns('trial balance', 'debit USD', 'credit USD'));
    for (const [account, amount] of [...this.house].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const debit = amount > 0n ? formatUsd(amount as PicoUsd) : '';
      print(columns(account, debit, amount < 0n ? formatUsd(-amount as PicoUsd) : ''));
    }
    const amounts = [...this.house.values()] as PicoUsd[];
    const debits = money.sum(amounts.filter((amount) => amount > ZERO));
    print(
      columns('sum', formatUsd(debits), formatUsd(money.negate(money.sum(amounts.filter((amount) => amount < ZERO))))),
    );
    print(columns('difference', formatUsd(money.sum(amounts)), ''));
  }
}

function columns(name: string, first: string, second: string): string {
  return `${name.padEnd(40)}${first.padStart(24)}${second.padStart(24)}`.trimEnd();
}
