/** Two sources of exchange rates, Kraken and Coinbase, which return the rates that they are given. */
import { money } from '#kernel';
import { type Call, parseObject, Refusal, type Routes } from './router.ts';

const SOURCES = ['kraken', 'coinbase'] as const;
type Source = (typeof SOURCES)[number];

/** USD for one, at first. Any other coin gets a rate when it is set. */
const FIRST_RATES = { BTC: '100000', LTC: '100', XMR: '200' };
/** Kraken prints the price of bitcoin with so many decimals; no rate here has more. */
const RATE_DECIMALS = 5;
/** Kraken's names of a pair, as it answers and as it may be asked; those of other coins are `<coin>USD`. */
const KRAKEN_PAIRS: readonly (readonly [coin: string, answered: string, ...asked: string[]])[] = [
  ['BTC', 'XXBTZUSD', 'XBTUSD', 'XBT/USD'],
  ['LTC', 'XLTCZUSD', 'LTCUSD', 'LTC/USD'],
  ['XMR', 'XXMRZUSD', 'XMRUSD', 'XMR/USD'],
];
/** What Coinbase does not sell. */
const NOT_AT_COINBASE = 'XMR';

/** USD for one coin in units of 10⁻⁵ USD, by coin, at one source. */
interface Quotes {
  rates: Map<string, bigint>;
  fails: boolean;
}
type Rates = Record<Source, Quotes>;

export function rateRoutes(): Routes {
  const rates: Rates = { kraken: firstQuotes(), coinbase: firstQuotes() };
  return {
    'GET /kraken/0/public/Ticker': (call) => call.json(200, krakenTicker(call, working(rates.kraken))),
    'GET /coinbase/v2/prices/*': (call) => coinbaseSpot(call, working(rates.coinbase)),
    'GET /rates': (call) => call.json(200, printed(rates)),
    'PUT /rates': async (call) => {
      for (const change of await changes(call)) change(rates);
      call.json(200, printed(rates));
    },
  };
}

function firstQuotes(): Quotes {
  const first = Object.entries(FIRST_RATES).map(([coin, rate]) => [coin, money.scaled(rate, RATE_DECIMALS)] as const);
  return { rates: new Map(first), fails: false };
}

function krakenTicker({ query }: Call, rates: ReadonlyMap<string, bigint>) {
  const result: Record<string, object> = {};
  for (const pair of (query.get('pair') ?? 'XBTUSD').split(',')) {
    const [coin, answered] = KRAKEN_PAIRS.find((names) => names.includes(pair, 1)) ?? [
      /^(\w+)USD$/.exec(pair)?.[1],
      pair,
    ];
    const rate = coin === undefined ? undefined : rates.get(coin);
    // Kraken answers errors with status 200 as well.
    if (rate === undefined) return { error: ['EQuery:Unknown asset pair'] };
    result[answered] = krakenPrices(decimals(rate, RATE_DECIMALS));
  }
  return { error: [], result };
}

function krakenPrices(price: string): object {
  return {
    a: [price, '1', '1.000'],
    b: [price, '1', '1.000'],
    c: [price, '0.00100000'],
    v: ['1000.00000000', '2000.00000000'],
    p: [price, price],
    t: [10_000, 20_000],
    l: [price, price],
    h: [price, price],
    o: price,
  };
}

function coinbaseSpot(call: Call, rates: ReadonlyMap<string, bigint>): void {
  const [, coin = ''] = /^(\w+)-USD\/spot$/.exec(call.parameter) ?? [];
  const rate = coin === NOT_AT_COINBASE ? undefined : rates.get(coin);
  if (rate === undefined) throw new Refusal(404, { errors: [{ id: 'not_found', message: 'Invalid base currency' }] });
  call.json(200, { data: { amount: decimals(rate, 2), base: coin, currency: 'USD' } });
}

function working({ rates, fails }: Quotes): ReadonlyMap<string, bigint> {
  if (fails) throw new Refusal(503, { error: 'this source fails, as the sandbox was instructed' });
  return rates;
}

/** Prints a rate with at least so many decimals. */
function decimals(rate: bigint, least: number): string {
  const [whole, fraction = ''] = money.unscaled(rate, RATE_DECIMALS).split('.');
  return `${whole}.${fraction.padEnd(least, '0')}`;
}

type Change = (rates: Rates) => void;

/**
 * `btc_usd`, and its like for any coin, is for all sources; a source by its name is for the bitcoin of that one, and null
 * makes it fail.
 */
async function changes(call: Call): Promise<readonly Change[]> {
  const body = parseObject(await call.text()) ?? refuse('the body must be a JSON object');
  return Object.entries(body).map(([name, value]): Change => {
    const [, coin] = /^([a-z][a-z0-9]{1,9})_usd$/.exec(name) ?? [];
    const named = SOURCES.filter((each) => each === name || coin !== undefined);
    if (named.length === 0) refuse(`there is no source "${name}"`);
    if (value === null && coin === undefined) return fail(named);
    const rate = rateIn(name, value);
    return (rates) => {
      for (const source of named) {
        rates[source].rates.set((coin ?? 'btc').toUpperCase(), rate);
        rates[source].fails = false;
      }
    };
  });
}

function fail(named: readonly Source[]): Change {
  return (rates) => {
    for (const source of named) rates[source].fails = true;
  };
}

function rateIn(name: string, value: unknown): bigint {
  const valid = typeof value === 'string' && /^\d{1,12}(\.\d{1,5})?$/.test(value);
  const rate = valid ? money.scaled(value, RATE_DECIMALS) : 0n;
  return rate > 0n ? rate : refuse(`"${name}" must be a decimal string above 0 with at most ${RATE_DECIMALS} decimals`);
}

function refuse(error: string): never {
  throw new Refusal(400, { error });
}

/** What they say of bitcoin. */
function printed({ kraken, coinbase }: Rates) {
  const text = ({ rates, fails }: Quotes) => (fails ? null : decimals(rates.get('BTC') ?? 0n, 2));
  return { kraken: text(kraken), coinbase: text(coinbase) };
}
