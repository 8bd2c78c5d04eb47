import { Module } from '@nestjs/common';
import { CARD_METHOD, Clock, ExchangeRates, PaymentBackendRegistry, PaymentMethods } from '#application';
import { readPayments } from '#catalogue';
import {
  createCoinbaseSource,
  createCoinGeckoSource,
  createKrakenSource,
  createPaymentBackends,
  MarketRates,
} from '#connectors';
import type { CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import { Foundation, StartError } from '#foundation';
import { ProcessRole } from './role.ts';
import { StoresModule } from './stores.module.ts';

const TERMS = Symbol('the coins and payment methods of the data files');
const RATED = Symbol('the coins that rates are wanted of');

/** What accounts are funded through: the back ends that take payments, and the rates that coins are valued at. */
@Module({
  imports: [StoresModule],
  providers: [
    { provide: TERMS, inject: [ProcessRole], useFactory: readTerms },
    { provide: PaymentBackendRegistry, inject: [ProcessRole, TERMS], useFactory: openBackends },
    {
      provide: PaymentMethods,
      inject: [ProcessRole, TERMS, PaymentBackendRegistry],
      useFactory: ({ settings }: ProcessRole, terms: PaymentTerms, backends: PaymentBackendRegistry) =>
        new PaymentMethods(terms, backends, settings.maxOpenInvoices),
    },
    { provide: RATED, inject: [TERMS, PaymentBackendRegistry], useFactory: ratedIn },
    { provide: ExchangeRates, inject: [ProcessRole, RATED, Clock, Foundation], useFactory: openRates },
  ],
  exports: [PaymentBackendRegistry, PaymentMethods, ExchangeRates],
})
export class PaymentsModule {}

/** @throws StartError that names the file and the field, or the setting */
function readTerms({ settings }: ProcessRole): PaymentTerms {
  const { catalogueDir, topupConfirmations } = settings;
  const terms = orStop(() => readPayments(catalogueDir));
  const unknown = Object.keys(topupConfirmations).find((name) => !terms.methods.some(({ method }) => method === name));
  if (unknown !== undefined)
    throw new StartError(`TOPUP_CONFIRMATIONS names the method "${unknown}", which is not there.`);
  const methods = terms.methods.map((each) => {
    const confirmations = topupConfirmations[each.method];
    const terms = confirmations === undefined ? each : { ...each, confirmations: Number(confirmations) };
    return each.method === CARD_METHOD ? { ...terms, limits: cardLimits(settings) } : terms;
  });
  return { ...terms, methods };
}

/** @throws StartError */
function cardLimits({ cardMinUsd, cardMaxUsd }: ProcessRole['settings']): PaymentMethod['limits'] {
  if (cardMinUsd > cardMaxUsd) throw new StartError('CARD_MIN_USD must not be above CARD_MAX_USD.');
  return { USD: { min: String(cardMinUsd), max: String(cardMaxUsd) } };
}

function openBackends(role: ProcessRole, terms: PaymentTerms): Promise<PaymentBackendRegistry> {
  return role.keep(orStop(() => createPaymentBackends(role.settings, terms)));
}

function orStop<T>(open: () => T): T {
  try {
    return open();
  } catch (error) {
    throw new StartError(`${(error as Error).message}.`);
  }
}

/** What rates are wanted of. */
interface Rated {
  readonly coins: readonly CoinTerms[];
  /** Codes of those that can be paid in here. */
  readonly taken: readonly string[];
}

/** @throws StartError where payments need rates and none could be believed, or a coin is named that cannot live on one source */
function openRates(
  role: ProcessRole,
  { coins, taken }: Rated,
  clock: Clock,
  { runtime }: Foundation,
): Promise<MarketRates> {
  const sources = rateSourcesIn(role.settings);
  const hasTwo = (code: string) => {
    const rates = coins.find((each) => each.code === code)?.rates ?? {};
    return sources.filter((source) => source.canQuote(rates)).length > 1;
  };
  if (taken.length > 0 && sources.length < 2)
    throw new StartError('Two of KRAKEN_URL, COINBASE_URL and COINGECKO_URL must be set: no source is believed alone.');
  const unfit = role.settings.loneSourceCoins.find((code) => !hasTwo(code));
  if (unfit !== undefined)
    throw new StartError(`RATE_LONE_SOURCE_COINS names "${unfit}", which two of the sources must quote to begin with.`);
  for (const code of taken.filter((each) => !hasTwo(each)))
    runtime.reportError(
      `top-ups in ${code} wait for ever: fewer than two sources of exchange rates quote it`,
      undefined,
    );
  return role.keep(new MarketRates({ sources, coins }, clock, role.settings, runtime.reportError));
}

function rateSourcesIn({ krakenUrl, coinbaseUrl, coinGeckoUrl, coinGeckoKey }: ProcessRole['settings']) {
  return [
    ...(krakenUrl === undefined ? [] : [createKrakenSource(krakenUrl)]),
    ...(coinbaseUrl === undefined ? [] : [createCoinbaseSource(coinbaseUrl)]),
    ...(coinGeckoUrl === undefined ? [] : [createCoinGeckoSource(coinGeckoUrl, coinGeckoKey)]),
  ];
}

/** A coin that is rated as another needs the rate of that; what has a fixed rate needs none. */
function ratedIn({ coins, methods }: PaymentTerms, backends: PaymentBackendRegistry): Rated {
  const paid = methods
    .filter((each) => backends.findForMethod(each))
    .map(({ coin }) => coins.find(({ code }) => code === coin));
  const taken = paid.flatMap((coin) => (coin && coin.fixedRate === undefined ? (coin.ratedAs ?? coin.code) : []));
  return { coins, taken: [...new Set(taken)] };
}
