/** How an account can be topped up, as data. */
import type { Coin, CoinTerms } from './coins.ts';
import type { Destination } from './events.ts';

export interface PaymentMethod {
  /** Its name in paths and in the books. */
  readonly method: string;
  readonly displayName: string;
  readonly coin: Coin;
  /** What the customer is given to pay to. */
  readonly destination: Destination['kind'];
  /** The back ends that can take it: the first that is configured does. */
  readonly backends: readonly string[];
  /** Smallest and largest amount by currency, as decimals. Minimums apply to what is asked for, not to what is paid. */
  readonly limits: Readonly<Record<string, { readonly min: string; readonly max: string }>>;
  readonly expiryMinutes: number;
  /** A bonus on each payment, and its name. */
  readonly bonus: { readonly percent: number; readonly description: string } | null;
  /** How often the network must have confirmed a payment before it is credited, where its back end leaves that to us. */
  readonly confirmations: number;
  /** Whether the public list of methods has it. */
  readonly listed: boolean;
}

export interface PaymentTerms {
  readonly coins: readonly CoinTerms[];
  readonly methods: readonly PaymentMethod[];
}
