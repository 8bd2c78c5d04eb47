import type { Coin, CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import type { PaymentBackend, PaymentBackendRegistry } from './payment-backend.ts';

/** The method of card payments. It is not on the public list: people pay by it on a page. */
export const CARD_METHOD = 'card';

/** A way to pay that is offered here. */
export interface AvailablePaymentMethod {
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
  getCoin(code: Coin): CoinTerms {
    const coin = this.terms.coins.find((candidate) => candidate.code === code);
    if (!coin) throw new Error(`the coin ${code} is missing from payments.json`);
    return coin;
  }

  /** Undefined when there is none of the name, or no back end takes it here. */
  findMethod(name: string): AvailablePaymentMethod | undefined {
    const terms = this.terms.methods.find(({ method }) => method === name);
    const backend = terms && this.backends.findForMethod(terms);
    return terms && backend && { terms, coin: this.getCoin(terms.coin), backend };
  }

  /** Those that the public list has. */
  get publicMethods(): readonly PaymentMethod[] {
    return this.terms.methods.filter((method) => method.listed && this.backends.findForMethod(method));
  }

  /** Also of a method that is not offered any more. */
  getDisplayName(method: string): string {
    return this.terms.methods.find((candidate) => candidate.method === method)?.displayName ?? method;
  }
}
