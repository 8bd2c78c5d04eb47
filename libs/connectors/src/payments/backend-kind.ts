import type { PaymentBackend } from '#application';
import type { CoinTerms, Destination, PaymentTerms } from '#domain';

/** A kind of payment backend, exported by the index of its folder. */
export interface BackendKind<Settings> {
  readonly name: string;
  /** Name of the setting that has the operator's credential. */
  readonly credentialSetting: string;
  /** Whether the backend supports payments in a coin to a destination of this kind. */
  accepts(coin: CoinTerms, kind: Destination['kind']): boolean;
  /**
   * The maximum number of confirmations that the backend can wait for. Undefined if the gateway counts confirmations.
   */
  getMaxConfirmations?(coin: CoinTerms): number;
  /**
   * @param terms include the coins of all payments that the backend may report
   * @returns undefined if the settings do not configure this kind
   */
  open(settings: Settings, terms: PaymentTerms): PaymentBackend | undefined;
}
