export { BACKEND_KINDS, openPaymentBackends, type PaymentSettings } from './payments/backends.ts';
export { BtcPayServer } from './payments/btcpay/index.ts';
export { LndNode } from './payments/lnd/index.ts';
export { answerMigrations, PostgresKeptAnswers } from './postgres/kept-answers.ts';
export { PostgresStoredResponses, storedResponseMigrations } from './postgres/stored-responses.ts';
export { OpenedProviders, openProviders } from './providers/open-providers.ts';
export { coinbase, kraken, MarketRates } from './rates/market-rates.ts';
