/** The configuration of payment methods. */
import type { Coin, CoinTerms } from './coins.ts';
import type { Destination } from './events.ts';

export interface PaymentMethod {
  /** Its name in routes and in the ledger. */
  readonly method: string;
  readonly displayName: string;
  readonly coin: Coin;
  readonly destination: Destination['kind'];
  /** The payment backends that support it. The first one that is configured is used. */
  readonly backends: readonly string[];
  /** Minimum and maximum by currency, as decimals. They apply to requested amounts, not to payments. */
  readonly limits: Readonly<Record<string, { readonly min: string; readonly max: string }>>;
  readonly expiryMinutes: number;
  /** The bonus on each payment. */
  readonly bonus: { readonly percent: number; readonly description: string } | null;
  /** The number of confirmations after which a payment is credited, if the payment backend does not decide it. */
  readonly confirmations: number;
  /** Whether the public list of methods includes it. */
  readonly listed: boolean;
}

export interface PaymentTerms {
  readonly coins: readonly CoinTerms[];
  readonly methods: readonly PaymentMethod[];
}
