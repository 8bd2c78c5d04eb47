import type { Coin, CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import { type PicoUsd, parseUsd } from '#kernel';
import type { PaymentBackend, PaymentBackendRegistry } from './payment-backend.ts';

/** The method of card payments. It is not on the public list: customers pay by card on a page. */
export const CARD_METHOD = 'card';

/** A node creates an invoice at once. */
const LIGHTNING_TIMEOUT_MS = 5_000;

/** A payment method that is available here. */
export interface AvailablePaymentMethod {
  readonly terms: PaymentMethod;
  readonly coin: CoinTerms;
  /** Not empty. Each one creates payments only if all before it reject the operator's credential. */
  readonly backends: readonly PaymentBackend[];
}

/** The coins and methods of the data files, and which of them are available here. */
export class PaymentMethods {
  constructor(
    private readonly terms: PaymentTerms,
    private readonly backends: PaymentBackendRegistry,
    /** Maximum per account. */
    readonly maxOpenInvoices: number,
    /** Maximum time for the creation of a Lightning invoice while a caller waits. */
    readonly lightningTimeoutMs = LIGHTNING_TIMEOUT_MS,
  ) {}

  /** @throws Error if the coin was removed from the data files although payments in it exist */
  getCoin(code: Coin): CoinTerms {
    const coin = this.terms.coins.find((candidate) => candidate.code === code);
    if (!coin) throw new Error(`the coin ${code} is missing from payments.json`);
    return coin;
  }

  /** @returns undefined if there is no such method, or no payment backend for it here */
  findMethod(name: string): AvailablePaymentMethod | undefined {
    const terms = this.terms.methods.find(({ method }) => method === name);
    const backends = terms ? this.backends.listForMethod(terms) : [];
    return terms && backends.length > 0 ? { terms, coin: this.getCoin(terms.coin), backends } : undefined;
  }

  /**
   * Returns what is credited at most for one invoice of a method without a person.
   * @returns undefined if the method is no longer in the data files, or has no limit in USD
   */
  getMaxAmount(method: string): PicoUsd | undefined {
    const max = this.terms.methods.find((candidate) => candidate.method === method)?.limits.USD?.max;
    return max === undefined ? undefined : parseUsd(max);
  }

  get availableMethods(): readonly PaymentMethod[] {
    return this.terms.methods.filter((method) => this.backends.findForMethod(method));
  }

  /** The available methods of the public list. */
  get publicMethods(): readonly PaymentMethod[] {
    return this.availableMethods.filter((method) => method.listed);
  }

  /** Whether any payment can be received here. */
  get hasBackend(): boolean {
    return this.backends.backends.length > 0;
  }

  /** Also supports methods that are no longer available. */
  getDisplayName(method: string): string {
    return this.terms.methods.find((candidate) => candidate.method === method)?.displayName ?? method;
  }
}
