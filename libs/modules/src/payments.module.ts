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

const PAYMENT_TERMS = Symbol('the coins and payment methods of the data files');
const RATED_COINS = Symbol('the coins that rates are wanted of');

/** What accounts are funded through: the back ends that take payments, and the rates that coins are valued at. */
@Module({
  imports: [StoresModule],
  providers: [
    { provide: PAYMENT_TERMS, inject: [ProcessRole], useFactory: readTerms },
    { provide: PaymentBackendRegistry, inject: [ProcessRole, PAYMENT_TERMS], useFactory: openBackends },
    {
      provide: PaymentMethods,
      inject: [ProcessRole, PAYMENT_TERMS, PaymentBackendRegistry],
      useFactory: ({ settings }: ProcessRole, terms: PaymentTerms, backends: PaymentBackendRegistry) =>
        new PaymentMethods(terms, backends, settings.maxOpenInvoices),
    },
    { provide: RATED_COINS, inject: [PAYMENT_TERMS, PaymentBackendRegistry], useFactory: selectRatedCoins },
    { provide: ExchangeRates, inject: [ProcessRole, RATED_COINS, Clock, Foundation], useFactory: openRates },
  ],
  exports: [PaymentBackendRegistry, PaymentMethods, ExchangeRates],
})
export class PaymentsModule {}

/** @throws StartError that names the file and the field, or the setting */
function readTerms({ settings }: ProcessRole): PaymentTerms {
  const { catalogueDir, topupConfirmations } = settings;
  const terms = withStartError(() => readPayments(catalogueDir));
  const unknown = Object.keys(topupConfirmations).find((name) => !terms.methods.some(({ method }) => method === name));
  if (unknown !== undefined)
    throw new StartError(`TOPUP_CONFIRMATIONS names the method "${unknown}", which is not there.`);
  const methods = terms.methods.map((method) => {
    const confirmations = topupConfirmations[method.method];
    const terms = confirmations === undefined ? method : { ...method, confirmations: Number(confirmations) };
    return method.method === CARD_METHOD ? { ...terms, limits: getCardLimits(settings) } : terms;
  });
  return { ...terms, methods };
}

/** @throws StartError */
function getCardLimits({ cardMinUsd, cardMaxUsd }: ProcessRole['settings']): PaymentMethod['limits'] {
  if (cardMinUsd > cardMaxUsd) throw new StartError('CARD_MIN_USD must not be above CARD_MAX_USD.');
  return { USD: { min: String(cardMinUsd), max: String(cardMaxUsd) } };
}

function openBackends(role: ProcessRole, terms: PaymentTerms): Promise<PaymentBackendRegistry> {
  return role.closeOnExit(withStartError(() => createPaymentBackends(role.settings, terms)));
}

function withStartError<T>(open: () => T): T {
  try {
    return open();
  } catch (error) {
    throw new StartError(`${(error as Error).message}.`);
  }
}

/** What rates are wanted of. */
interface RatedCoins {
  readonly coins: readonly CoinTerms[];
  /** Codes of those that can be paid in here. */
  readonly acceptedCodes: readonly string[];
}

/** @throws StartError where payments need rates and none could be believed, or a coin is named that cannot live on one source */
function openRates(
  role: ProcessRole,
  { coins, acceptedCodes }: RatedCoins,
  clock: Clock,
  { runtime }: Foundation,
): Promise<MarketRates> {
  const sources = createRateSources(role.settings);
  const hasTwo = (code: string) => {
    const rates = coins.find((coin) => coin.code === code)?.rates ?? {};
    return sources.filter((source) => source.canQuote(rates)).length > 1;
  };
  if (acceptedCodes.length > 0 && sources.length < 2)
    throw new StartError('Two of KRAKEN_URL, COINBASE_URL and COINGECKO_URL must be set: no source is believed alone.');
  const unsupportedCode = role.settings.loneSourceCoins.find((code) => !hasTwo(code));
  if (unsupportedCode !== undefined)
    throw new StartError(
      `RATE_LONE_SOURCE_COINS names "${unsupportedCode}", which two of the sources must quote to begin with.`,
    );
  for (const code of acceptedCodes.filter((coinCode) => !hasTwo(coinCode)))
    runtime.reportError(
      `top-ups in ${code} wait for ever: fewer than two sources of exchange rates quote it`,
      undefined,
    );
  return role.closeOnExit(new MarketRates({ sources, coins }, clock, role.settings, runtime.reportError));
}

function createRateSources({ krakenUrl, coinbaseUrl, coinGeckoUrl, coinGeckoKey }: ProcessRole['settings']) {
  return [
    ...(krakenUrl === undefined ? [] : [createKrakenSource(krakenUrl)]),
    ...(coinbaseUrl === undefined ? [] : [createCoinbaseSource(coinbaseUrl)]),
    ...(coinGeckoUrl === undefined ? [] : [createCoinGeckoSource(coinGeckoUrl, coinGeckoKey)]),
  ];
}

/** A coin that is rated as another needs the rate of that; what has a fixed rate needs none. */
function selectRatedCoins({ coins, methods }: PaymentTerms, backends: PaymentBackendRegistry): RatedCoins {
  const paid = methods
    .filter((method) => backends.findForMethod(method))
    .map(({ coin }) => coins.find(({ code }) => code === coin));
  const codes = paid.flatMap((coin) => (coin && coin.fixedRate === undefined ? (coin.ratedAs ?? coin.code) : []));
  return { coins, acceptedCodes: [...new Set(codes)] };
}
