import type { Coin } from '#domain';

export interface Rate {
  /** USD per coin, as a decimal string. */
  readonly value: string;
  readonly source: string;
  /** When the source reported the rate. ISO 8601. */
  readonly at: string;
}

/** The port to exchange rates. Adapters: `libs/connectors`. */
export abstract class ExchangeRates {
  /** @throws UpstreamError if no rate is recent enough to sell at */
  abstract fetchUsdRate(coin: Coin): Promise<Rate>;
}
