import { type DomainEvent, toPostings } from '#domain';
import { type EventReader, formatUsd, money, type PicoUsd, START_POSITION, type StoredEvent, ZERO_USD } from '#kernel';
import { formatColumns, parseUntilFilter, ReplayExtent } from './event-filter.ts';

/** Prints the trial balance, and the balance of every account with postings, as of a position or a booking time. */
export async function replay(
  store: EventReader,
  until: string | undefined,
  print: (line: string) => void,
): Promise<void> {
  const isIncluded = parseUntilFilter(until);
  const balances = new LedgerBalances();
  for await (const { events } of store.readAll(START_POSITION))
    for (const event of events) if (isIncluded(event)) balances.book(event);
  balances.print(print);
}

/** Sums the postings by ledger account and by customer. */
class LedgerBalances {
  private readonly trialBalance = new Map<string, bigint>();
  private readonly customers = new Map<string, { available: bigint; held: bigint }>();
  private readonly extent = new ReplayExtent();

  book(recorded: StoredEvent): void {
    const event = recorded as StoredEvent<DomainEvent>;
    this.extent.add(event);
    for (const { account, customer, amount } of toPostings(event.stream, event)) {
      this.trialBalance.set(account, (this.trialBalance.get(account) ?? 0n) + amount);
      if (customer === null || !account.startsWith('customer:')) continue;
      const balance = this.customers.get(customer) ?? { available: 0n, held: 0n };
      this.customers.set(customer, balance);
      if (account === 'customer:available') balance.available -= amount;
      else balance.held -= amount;
    }
  }

  print(print: (line: string) => void): void {
    print(`${this.extent}, ${this.customers.size} accounts with postings`);
    print('');
    print(formatColumns('account', 'available USD', 'held USD'));
    for (const [customer, { available, held }] of [...this.customers].sort(([a], [b]) => (a < b ? -1 : 1))) {
      print(formatColumns(customer, formatUsd(available as PicoUsd), formatUsd(held as PicoUsd)));
    }
    print('');
    print(formatColumns('trial balance', 'debit USD', 'credit USD'));
    for (const [account, amount] of [...this.trialBalance].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const debit = amount > 0n ? formatUsd(amount as PicoUsd) : '';
      print(formatColumns(account, debit, amount < 0n ? formatUsd(-amount as PicoUsd) : ''));
    }
    const amounts = [...this.trialBalance.values()] as PicoUsd[];
    const debits = money.sum(amounts.filter((amount) => amount > ZERO_USD));
    print(
      formatColumns(
        'sum',
        formatUsd(debits),
        formatUsd(money.negate(money.sum(amounts.filter((amount) => amount < ZERO_USD)))),
      ),
    );
    print(formatColumns('difference', formatUsd(money.sum(amounts)), ''));
  }
}
