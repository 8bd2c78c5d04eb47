import { Module } from '@nestjs/common';
import pg from 'pg';
import {
  CARD_METHOD,
  Clock,
  ExchangeRates,
  ListedLimits,
  OperatorProblems,
  PaymentBackendRegistry,
  PaymentMethods,
} from '#application';
import { readPayments } from '#catalogue';
import {
  createCoinbaseSource,
  createCoinGeckoSource,
  createKrakenSource,
  createPaymentBackends,
  type Market,
  MarketRates,
  rateMigrations,
  SharedRates,
} from '#connectors';
import type { CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import { Foundation, prepareTables, StartError } from '#foundation';
import { ProcessRole } from './role.ts';
import { StoresModule } from './stores.module.ts';

const PAYMENT_TERMS = Symbol('coins and payment methods of the catalogue');
const RATED_COINS = Symbol('coins that need exchange rates');
const MARKET = Symbol('sources of exchange rates');

/** Payment backends, payment methods and exchange rates. */
@Module({
  imports: [StoresModule],
  providers: [
    { provide: PAYMENT_TERMS, inject: [ProcessRole], useFactory: readTerms },
    {
      provide: PaymentBackendRegistry,
      inject: [ProcessRole, PAYMENT_TERMS, OperatorProblems],
      useFactory: openBackends,
    },
    {
      provide: PaymentMethods,
      inject: [ProcessRole, PAYMENT_TERMS, PaymentBackendRegistry],
      useFactory: ({ settings }: ProcessRole, terms: PaymentTerms, backends: PaymentBackendRegistry) =>
        new PaymentMethods(terms, backends, settings.maxOpenInvoices),
    },
    { provide: RATED_COINS, inject: [PAYMENT_TERMS, PaymentBackendRegistry], useFactory: selectRatedCoins },
    {
      provide: MARKET,
      inject: [Foundation, RATED_COINS, pg.Pool, OperatorProblems],
      useFactory: openMarket,
    },
    { provide: ExchangeRates, inject: [ProcessRole, MARKET, Clock, Foundation], useFactory: openRates },
    {
      provide: ListedLimits,
      inject: [PaymentMethods, ExchangeRates, Clock],
      useFactory: (methods: PaymentMethods, rates: ExchangeRates, clock: Clock) =>
        new ListedLimits(methods, rates, clock),
    },
  ],
  exports: [PaymentBackendRegistry, PaymentMethods, ExchangeRates, ListedLimits],
})
export class PaymentsModule {}

/** @throws StartError, which names the field or setting, if payments.json or a setting is invalid */
function readTerms({ settings }: ProcessRole): PaymentTerms {
  const { catalogueDir, topupConfirmations } = settings;
  const terms = withStartError(() => readPayments(catalogueDir));
  const unknown = Object.keys(topupConfirmations).find((name) => !terms.methods.some(({ method }) => method === name));
  if (unknown !== undefined)
    throw new StartError(`TOPUP_CONFIRMATIONS names the method "${unknown}", which does not exist.`);
  const methods = terms.methods.map((method) => {
    const confirmations = topupConfirmations[method.method];
    const terms = confirmations === undefined ? method : { ...method, confirmations: Number(confirmations) };
    return method.method === CARD_METHOD ? { ...terms, limits: getCardLimits(settings) } : terms;
  });
  return { ...terms, methods };
}

/** @throws StartError if the minimum is above the maximum */
function getCardLimits({ cardMinUsd, cardMaxUsd }: ProcessRole['settings']): PaymentMethod['limits'] {
  if (cardMinUsd > cardMaxUsd) throw new StartError('CARD_MIN_USD must not be above CARD_MAX_USD.');
  return { USD: { min: String(cardMinUsd), max: String(cardMaxUsd) } };
}

function openBackends(
  role: ProcessRole,
  terms: PaymentTerms,
  problems: OperatorProblems,
): Promise<PaymentBackendRegistry> {
  role.onSecretChange((next) => withStartError(() => createPaymentBackends(next, terms)).close());
  return role.closeOnExit(withStartError(() => createPaymentBackends(role.settings, terms, problems)));
}

function withStartError<T>(open: () => T): T {
  try {
    return open();
  } catch (error) {
    throw new StartError(`${(error as Error).message}.`);
  }
}

interface RatedCoins {
  readonly coins: readonly CoinTerms[];
  /** Codes of the coins whose rates the configured payment methods need. */
  readonly acceptedCodes: readonly string[];
}

/**
 * @throws StartError if payments need exchange rates and there are fewer than two sources, or if RATE_LONE_SOURCE_COINS
 *   names a coin that fewer than two sources quote
 */
async function openMarket(
  foundation: Foundation,
  { coins, acceptedCodes }: RatedCoins,
  pool: pg.Pool,
  problems: OperatorProblems,
): Promise<Market> {
  const { settings } = foundation;
  const sources = createRateSources(settings, problems);
  const hasTwo = (code: string) => {
    const rates = coins.find((coin) => coin.code === code)?.rates ?? {};
    return sources.filter((source) => source.canQuote(rates)).length > 1;
  };
  if (acceptedCodes.length > 0 && sources.length < 2)
    throw new StartError('Two of KRAKEN_URL, COINBASE_URL and COINGECKO_URL must be set: one source is not enough.');
  const unsupportedCode = settings.loneSourceCoins.find((code) => !hasTwo(code));
  if (unsupportedCode !== undefined)
    throw new StartError(
      `RATE_LONE_SOURCE_COINS names "${unsupportedCode}", but fewer than two of the sources quote it.`,
    );
  for (const code of acceptedCodes.filter((coinCode) => !hasTwo(coinCode)))
    foundation.runtime.reportError(
      `no invoice at the rate of ${code} can be created: fewer than two exchange rate sources quote it`,
      undefined,
    );
  await prepareTables(foundation, rateMigrations);
  return { sources, coins, shared: new SharedRates(pool) };
}

function openRates(role: ProcessRole, market: Market, clock: Clock, { runtime }: Foundation): Promise<MarketRates> {
  return role.closeOnExit(new MarketRates(market, clock, role.settings, runtime.reportError));
}

function createRateSources(settings: ProcessRole['settings'], problems: OperatorProblems) {
  const { krakenUrl, coinbaseUrl, coinGeckoUrl } = settings;
  const monitor = problems.createMonitor('coingecko', 'the source of exchange rates coingecko', 'COINGECKO_API_KEY');
  const getKey = () => settings.coinGeckoKey;
  return [
    ...(krakenUrl === undefined ? [] : [createKrakenSource(krakenUrl)]),
    ...(coinbaseUrl === undefined ? [] : [createCoinbaseSource(coinbaseUrl)]),
    ...(coinGeckoUrl === undefined ? [] : [createCoinGeckoSource(coinGeckoUrl, getKey, monitor)]),
  ];
}

/** A coin with `ratedAs` needs the rate of the coin that is named there. A coin with a fixed rate needs none. */
function selectRatedCoins({ coins, methods }: PaymentTerms, backends: PaymentBackendRegistry): RatedCoins {
  const paid = methods
    .filter((method) => backends.findForMethod(method))
    .map(({ coin }) => coins.find(({ code }) => code === coin));
  const codes = paid.flatMap((coin) => (coin && coin.fixedRate === undefined ? (coin.ratedAs ?? coin.code) : []));
  return { coins, acceptedCodes: [...new Set(codes)] };
}
