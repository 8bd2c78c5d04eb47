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
 * Prints what each back end should hold in each coin, and by payment method what exchange rates have won and lost and what
 * back ends have kept, in USD, as it was at a position or a booking time. From the facts alone.
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
  for await (const { events } of store.readAll(START_POSITION)) {
    for (const recorded of events) {
      if (!isIncluded(recorded)) continue;
      const event = recorded as StoredEvent<DomainEvent>;
      extent.add(event);
      coinBalances.book(event);
      methods.book(event);
    }
  }
  print(extent.toString());
  for (const line of [...coinBalances.formatLines(coins), ...methods.formatLines()]) print(line);
}

/** What came into a wallet in a coin, and went out of it, in units. */
interface Wallet {
  readonly backend: string;
  readonly coin: Coin;
  payments: bigint;
  reversals: bigint;
  fees: bigint;
}

class CoinBalances {
  private readonly wallets = new Map<string, Wallet>();
  /** By payment. */
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

/** What a coin is counted in: whole ones, and the unit that its wallets count in. */
function getUnitNames(coin: Coin, terms: CoinTerms | undefined): readonly string[] {
  return terms ? [coin, terms.unit?.name ?? 'units'] : [`${coin} units`];
}

function formatAmounts(units: bigint, terms: CoinTerms | undefined): readonly string[] {
  if (!terms) return [units.toString()];
  return [formatCoins(units, terms), money.formatScaled(units, terms.unit?.decimals ?? 0)];
}

/** Of a payment method, in USD. */
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
      // What the house wins is a credit.
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

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
