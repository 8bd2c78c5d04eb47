/** How an account can be topped up. A method is data: another one on an existing back end is an entry here. */
import type { Coin } from './coins.ts';
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
}

export const PAYMENT_METHODS: readonly PaymentMethod[] = [
  {
    method: 'btc-lightning',
    displayName: 'Bitcoin Lightning',
    coin: 'BTC',
    destination: 'bolt11',
    backends: ['lnd'],
    limits: {
      USD: { min: '0.1', max: '1000' },
      BTC: { min: '0.000001', max: '0.01' },
      SATS: { min: '100', max: '1000000' },
    },
    expiryMinutes: 15,
    bonus: { percent: 5, description: '5% Lightning fee bonus' },
    confirmations: 0,
  },
];
