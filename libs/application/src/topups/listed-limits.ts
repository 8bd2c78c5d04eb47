import { type AmountRange, getAmountRange, type PaymentMethod } from '#domain';
import { StoreUnavailableError } from '#kernel';
import { Clock } from '../clock.ts';
import { UpstreamError } from '../errors.ts';
import { ExchangeRates } from './exchange-rates.ts';
import { PaymentMethods } from './payment-methods.ts';

/** The list is public, so that not every request for it may read exchange rates. */
const MAX_AGE_MS = 10_000;

export interface ListedMethod {
  readonly terms: PaymentMethod;
  /** Limits of requested amounts by currency, without the currencies whose exchange rate is not available. */
  readonly limits: Readonly<Record<string, AmountRange>>;
}

/** The public list of payment methods, with their limits at the current exchange rates. */
export class ListedLimits {
  private cached: { readonly at: number; readonly methods: Promise<readonly ListedMethod[]> } | undefined;

  constructor(
    private readonly paymentMethods: PaymentMethods,
    private readonly rates: ExchangeRates,
    private readonly clock: Clock,
  ) {}

  listMethods(): Promise<readonly ListedMethod[]> {
    const now = this.clock.nowMs();
    if (!this.cached || Math.abs(now - this.cached.at) >= MAX_AGE_MS) {
      const methods = Promise.all(this.paymentMethods.publicMethods.map((terms) => this.listMethod(terms)));
      this.cached = { at: now, methods };
    }
    return this.cached.methods;
  }

  private async listMethod(terms: PaymentMethod): Promise<ListedMethod> {
    const { coin: code, currencies } = terms;
    const coin = this.paymentMethods.getCoin(code);
    const needsRate = currencies.some((currency) => getAmountRange(terms, currency, coin) === undefined);
    const rate = needsRate ? await this.findRate(code) : undefined;
    const ranges = currencies.map((currency) => [currency, getAmountRange(terms, currency, coin, rate)] as const);
    return { terms, limits: Object.fromEntries(ranges.filter((entry): entry is [string, AmountRange] => !!entry[1])) };
  }

  /** @returns undefined if no rate is accepted, or the store of rates is not available */
  private async findRate(coin: string): Promise<string | undefined> {
    try {
      return (await this.rates.fetchUsdRate(coin)).value;
    } catch (error) {
      if (error instanceof UpstreamError || error instanceof StoreUnavailableError) return undefined;
      throw error;
    }
  }
}
