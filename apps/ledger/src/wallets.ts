import { RepeatedPayments } from '#audit';
import {
  type Coin,
  type CoinPosting,
  type CoinTerms,
  type DomainEvent,
  formatCoins,
  toCoinPostings,
  toPaymentKey,
  toPostings,
} from '#domain';
import { type EventReader, formatUsd, money, type PicoUsd, START_POSITION, type StoredEvent, ZERO_USD } from '#kernel';
import { formatColumns, parseUntilFilter, ReplayExtent } from './event-filter.ts';

/**
 * Prints the amount that each payment backend should hold in each coin. Also prints for each payment method, in USD,
 * its fees and its gains and losses from exchange rates, and what the operator credited and debited without a payment.
 * All are computed from events up to a position or a booking time. Names payments that were recorded more than once,
 * because their coins are counted more than once, and contested payments, whose coins are counted once.
 */
export async function printWallets(
  { store, coins }: { readonly store: EventReader; readonly coins: readonly CoinTerms[] },
  until: string | undefined,
  print: (line: string) => void,
): Promise<void> {
  const isIncluded = parseUntilFilter(until);
  const extent = new ReplayExtent();
  const coinBalances = new CoinBalances();
  const methods = new MethodTotals();
  const payments = new RepeatedPayments();
  const funding = new OperatorFunding();
  for await (const { events } of store.readAll(START_POSITION)) {
    for (const recorded of events) {
      if (!isIncluded(recorded)) continue;
      const event = recorded as StoredEvent<DomainEvent>;
      extent.add(event);
      coinBalances.book(event);
      methods.book(event);
      payments.book(event);
      funding.book(event);
    }
  }
  print(extent.toString());
  for (const lines of [coinBalances.formatLines(coins), methods.formatLines(), funding.formatLines(), ['']])
    for (const line of lines) print(line);
  for (const line of payments.formatLines()) print(line);
}

/** Changes of a payment backend's balance in one coin, in the coin's smallest unit. Reversals and fees are negative. */
interface Wallet {
  readonly backend: string;
  readonly coin: Coin;
  payments: bigint;
  reversals: bigint;
  fees: bigint;
}

class CoinBalances {
  private readonly wallets = new Map<string, Wallet>();
  /** The coin of each payment. */
  private readonly coins = new Map<string, Coin>();

  book(event: DomainEvent): void {
    if (event.type === 'PaymentReceived') this.coins.set(toPaymentKey(event.data.payment), event.data.coin);
    const postings = toCoinPostings(event, (payment) => this.coins.get(toPaymentKey(payment)));
    const [into, from] = postings;
    if (into && from) this.addTransfer(into, from);
  }

  private addTransfer({ account, coin, units }: CoinPosting, from: CoinPosting): void {
    const backend = account.slice('wallet:'.length);
    const key = `${backend} ${coin}`;
    const wallet = this.wallets.get(key) ?? { backend, coin, payments: 0n, reversals: 0n, fees: 0n };
    this.wallets.set(key, wallet);
    wallet[from.account.split(':')[0] as 'payments' | 'reversals' | 'fees'] += units;
  }

  *formatLines(coins: readonly CoinTerms[]): Generator<string> {
    for (const [, wallet] of [...this.wallets].sort(byName)) {
      const terms = coins.find(({ code }) => code === wallet.coin);
      const formatTotal = (name: string, units: bigint) => formatColumns(name, ...formatAmounts(units, terms));
      yield '';
      yield formatColumns(wallet.backend, ...getUnitNames(wallet.coin, terms));
      yield formatTotal('received', wallet.payments);
      yield formatTotal('reversed', wallet.reversals);
      yield formatTotal('fees', wallet.fees);
      yield formatTotal('should hold', wallet.payments + wallet.reversals + wallet.fees);
    }
  }
}

/**
 * Returns the headings of the two columns: the amount in coins, and in the unit of the coin's wallets. An unknown coin
 * has only one column, in its smallest unit.
 */
function getUnitNames(coin: Coin, terms: CoinTerms | undefined): readonly string[] {
  return terms ? [coin, terms.unit?.name ?? 'units'] : [`${coin} units`];
}

function formatAmounts(units: bigint, terms: CoinTerms | undefined): readonly string[] {
  if (!terms) return [units.toString()];
  return [formatCoins(units, terms), money.formatScaled(units, terms.unit?.decimals ?? 0)];
}

/** Amounts of a payment method in USD. */
interface MethodAmounts {
  gains: PicoUsd;
  losses: PicoUsd;
  fees: PicoUsd;
}

class MethodTotals {
  private readonly methods = new Map<string, MethodAmounts>();

  book(event: StoredEvent<DomainEvent>): void {
    for (const { account, amount } of toPostings(event.stream, event)) {
      const [kind, method = ''] = account.split(':');
      if (kind !== 'rates' && kind !== 'fees') continue;
      const amounts = this.methods.get(method) ?? { gains: ZERO_USD, losses: ZERO_USD, fees: ZERO_USD };
      this.methods.set(method, amounts);
      // Gains of the operator are credits, which are negative.
      if (kind === 'fees') amounts.fees = money.add(amounts.fees, amount);
      else if (amount < ZERO_USD) amounts.gains = money.subtract(amounts.gains, amount);
      else amounts.losses = money.add(amounts.losses, amount);
    }
  }

  *formatLines(): Generator<string> {
    yield '';
    yield formatColumns('by method, in USD', 'gained by rates', 'lost by rates', 'fees');
    for (const [method, { gains, losses, fees }] of [...this.methods].sort(byName))
      yield formatColumns(method, formatUsd(gains), formatUsd(losses), formatUsd(fees));
  }
}

/**
 * What the operator credited to accounts and debited from them without a payment. Reversals count on the other side.
 */
class OperatorFunding {
  private credits = ZERO_USD;
  private debits = ZERO_USD;

  book(event: DomainEvent): void {
    if (event.type !== 'BalanceAdjusted') return;
    const amount = money.parseJsonAmount(event.data.amount);
    if (amount > ZERO_USD) this.credits = money.add(this.credits, amount);
    else this.debits = money.subtract(this.debits, amount);
  }

  *formatLines(): Generator<string> {
    if (this.credits === ZERO_USD && this.debits === ZERO_USD) return;
    yield '';
    yield formatColumns('by the operator, in USD', 'credited', 'debited', 'funding');
    const net = money.subtract(this.credits, this.debits);
    yield formatColumns('operator', formatUsd(this.credits), formatUsd(this.debits), formatUsd(net));
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
