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
import { Extent, formatColumns, parseUntilFilter } from './point-in-time.ts';

/**
 * Prints what each back end should hold in each coin, and by payment method what exchange rates have won and lost and what
 * back ends have kept, in USD, as it was at a position or a booking time. From the facts alone.
 */
export async function printWallets(
  { store, coins }: { readonly store: EventReader; readonly coins: readonly CoinTerms[] },
  until: string | undefined,
  print: (line: string) => void,
): Promise<void> {
  const within = parseUntilFilter(until);
  const extent = new Extent();
  const books = new CoinBooks();
  const methods = new MethodBooks();
  for await (const { events } of store.readAll(START_POSITION)) {
    for (const recorded of events) {
      if (!within(recorded)) continue;
      const fact = recorded as StoredEvent<DomainEvent>;
      extent.add(fact);
      books.book(fact);
      methods.book(fact);
    }
  }
  print(extent.toString());
  for (const line of [...books.lines(coins), ...methods.lines()]) print(line);
}

/** What came into a wallet in a coin, and went out of it, in units. */
interface Wallet {
  readonly backend: string;
  readonly coin: Coin;
  payments: bigint;
  reversals: bigint;
  fees: bigint;
}

class CoinBooks {
  private readonly wallets = new Map<string, Wallet>();
  /** By payment. */
  private readonly coins = new Map<string, Coin>();

  book(fact: DomainEvent): void {
    if (fact.type === 'PaymentReceived') this.coins.set(toPaymentKey(fact.data.payment), fact.data.coin);
    const lines = toCoinPostings(fact, (payment) => this.coins.get(toPaymentKey(payment)));
    const [into, from] = lines;
    if (into && from) this.move(into, from);
  }

  private move({ account, coin, units }: CoinPosting, from: CoinPosting): void {
    const backend = account.slice('wallet:'.length);
    const key = `${backend} ${coin}`;
    const wallet = this.wallets.get(key) ?? { backend, coin, payments: 0n, reversals: 0n, fees: 0n };
    this.wallets.set(key, wallet);
    wallet[from.account.split(':')[0] as 'payments' | 'reversals' | 'fees'] += units;
  }

  *lines(coins: readonly CoinTerms[]): Generator<string> {
    for (const [, wallet] of [...this.wallets].sort(byName)) {
      const terms = coins.find(({ code }) => code === wallet.coin);
      const row = (name: string, units: bigint) => formatColumns(name, ...figuresOf(units, terms));
      yield '';
      yield formatColumns(wallet.backend, ...unitsOf(wallet.coin, terms));
      yield row('received', wallet.payments);
      yield row('reversed', wallet.reversals);
      yield row('fees', wallet.fees);
      yield row('should hold', wallet.payments + wallet.reversals + wallet.fees);
    }
  }
}

/** What a coin is counted in: whole ones, and the unit that its wallets count in. */
function unitsOf(coin: Coin, terms: CoinTerms | undefined): readonly string[] {
  return terms ? [coin, terms.unit?.name ?? 'units'] : [`${coin} units`];
}

function figuresOf(units: bigint, terms: CoinTerms | undefined): readonly string[] {
  if (!terms) return [units.toString()];
  return [formatCoins(units, terms), money.formatScaled(units, terms.unit?.decimals ?? 0)];
}

/** Of a payment method, in USD. */
interface Rated {
  gains: PicoUsd;
  losses: PicoUsd;
  fees: PicoUsd;
}

class MethodBooks {
  private readonly methods = new Map<string, Rated>();

  book(fact: StoredEvent<DomainEvent>): void {
    for (const { account, amount } of toPostings(fact.stream, fact)) {
      const [kind, method = ''] = account.split(':');
      if (kind !== 'rates' && kind !== 'fees') continue;
      const rated = this.methods.get(method) ?? { gains: ZERO_USD, losses: ZERO_USD, fees: ZERO_USD };
      this.methods.set(method, rated);
      // What the house wins is a credit.
      if (kind === 'fees') rated.fees = money.add(rated.fees, amount);
      else if (amount < ZERO_USD) rated.gains = money.subtract(rated.gains, amount);
      else rated.losses = money.add(rated.losses, amount);
    }
  }

  *lines(): Generator<string> {
    yield '';
    yield formatColumns('by method, in USD', 'gained by rates', 'lost by rates', 'fees');
    for (const [method, { gains, losses, fees }] of [...this.methods].sort(byName))
      yield formatColumns(method, formatUsd(gains), formatUsd(losses), formatUsd(fees));
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
