export { LndNode } from './payments/lnd/lnd-node.ts';
export { PostgresStoredResponses, storedResponseMigrations } from './postgres/stored-responses.ts';
export { OpenedProviders, openProviders } from './providers/open-providers.ts';
export { coinbase, kraken, MarketRates } from './rates/market-rates.ts';
