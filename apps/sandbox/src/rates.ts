/** Two sources of exchange rates, Kraken and Coinbase, which return the rates that they are given. */
import { money } from '#kernel';
import { type Call, parseObject, Refusal, type Routes } from './router.ts';

const SOURCES = ['kraken', 'coinbase'] as const;
type Source = (typeof SOURCES)[number];

const DEFAULT_RATE = '100000';
/** Kraken prints the price of this pair with so many decimals; no rate here has more. */
const RATE_DECIMALS = 5;
const KRAKEN_PAIR = 'XXBTZUSD';
const KRAKEN_NAMES = new Set(['XBTUSD', 'XBT/USD', KRAKEN_PAIR]);

/** USD for one bitcoin in units of 10⁻⁵ USD, by source; null is a source that fails. */
type Rates = Record<Source, bigint | null>;

export function rateRoutes(): Routes {
  const first = money.scaled(DEFAULT_RATE, RATE_DECIMALS);
  const rates: Rates = { kraken: first, coinbase: first };
  return {
    'GET /kraken/0/public/Ticker': (call) => call.json(200, krakenTicker(call, working(rates.kraken))),
    'GET /coinbase/v2/prices/BTC-USD/spot': (call) => call.json(200, coinbaseSpot(working(rates.coinbase))),
    'GET /rates': (call) => call.json(200, printed(rates)),
    'PUT /rates': async (call) => {
      Object.assign(rates, await changes(call));
      call.json(200, printed(rates));
    },
  };
}

function krakenTicker({ query }: Call, rate: bigint) {
  const pairs = query.get('pair')?.split(',') ?? [KRAKEN_PAIR];
  // Kraken answers errors with status 200 as well.
  if (!pairs.every((pair) => KRAKEN_NAMES.has(pair))) return { error: ['EQuery:Unknown asset pair'] };
  const price = decimals(rate, RATE_DECIMALS);
  const ticker = {
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
  return { error: [], result: { [KRAKEN_PAIR]: ticker } };
}

function coinbaseSpot(rate: bigint) {
  return { data: { amount: decimals(rate, 2), base: 'BTC', currency: 'USD' } };
}

function working(rate: bigint | null): bigint {
  if (rate === null) throw new Refusal(503, { error: 'this source fails, as the sandbox was instructed' });
  return rate;
}

/** Prints a rate with at least so many decimals. */
function decimals(rate: bigint, least: number): string {
  const [whole, fraction = ''] = money.unscaled(rate, RATE_DECIMALS).split('.');
  return `${whole}.${fraction.padEnd(least, '0')}`;
}

/** `btc_usd` is for both sources; a source by its name is for that one, and null makes it fail. */
async function changes(call: Call): Promise<Partial<Rates>> {
  const { btc_usd, ...bySource } = parseObject(await call.text()) ?? refuse('the body must be a JSON object');
  const changed: Partial<Rates> = {};
  if (btc_usd !== undefined) for (const source of SOURCES) changed[source] = rateIn('btc_usd', btc_usd);
  for (const [name, value] of Object.entries(bySource)) {
    const source = SOURCES.find((each) => each === name) ?? refuse(`there is no source "${name}"`);
    changed[source] = value === null ? null : rateIn(name, value);
  }
  return changed;
}

function rateIn(name: string, value: unknown): bigint {
  const valid = typeof value === 'string' && /^\d{1,12}(\.\d{1,5})?$/.test(value);
  const rate = valid ? money.scaled(value, RATE_DECIMALS) : 0n;
  return rate > 0n ? rate : refuse(`"${name}" must be a decimal string above 0 with at most ${RATE_DECIMALS} decimals`);
}

function refuse(error: string): never {
  throw new Refusal(400, { error });
}

function printed({ kraken, coinbase }: Rates) {
  const text = (rate: bigint | null) => (rate === null ? null : decimals(rate, 2));
  return { kraken: text(kraken), coinbase: text(coinbase) };
}
