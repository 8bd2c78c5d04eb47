import type { Coin, CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import type { PaymentBackend, PaymentBackendRegistry } from './payment-backend.ts';

/** The method of card payments. It is not on the public list: people pay by it on a page. */
export const CARD = 'card';

/** A way to pay that is offered here. */
export interface OfferedMethod {
  readonly terms: PaymentMethod;
  readonly coin: CoinTerms;
  readonly backend: PaymentBackend;
}

/** The coins and methods of the data files, and which of them can be paid with here. */
export class PaymentMethods {
  constructor(
    private readonly terms: PaymentTerms,
    private readonly backends: PaymentBackendRegistry,
    /** Of one account, at the same time. */
    readonly maxOpenInvoices: number,
  ) {}

  /** @throws Error when the coin was taken out of the data files although it was paid in */
  coin(code: Coin): CoinTerms {
    const coin = this.terms.coins.find((each) => each.code === code);
    if (!coin) throw new Error(`the coin ${code} is missing from payments.json`);
    return coin;
  }

  /** Undefined when there is none of the name, or no back end takes it here. */
  method(name: string): OfferedMethod | undefined {
    const terms = this.terms.methods.find(({ method }) => method === name);
    const backend = terms && this.backends.of(terms);
    return terms && backend && { terms, coin: this.coin(terms.coin), backend };
  }

  /** Those that the public list has. */
  get listed(): readonly PaymentMethod[] {
    return this.terms.methods.filter((each) => each.listed && this.backends.of(each));
  }

  /** Also of a method that is not offered any more. */
  displayName(method: string): string {
    return this.terms.methods.find((each) => each.method === method)?.displayName ?? method;
  }
}
