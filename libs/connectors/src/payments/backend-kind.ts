import type { PaymentBackend } from '#application';
import type { CoinTerms, Destination, PaymentTerms } from '#domain';

/** What the index of a back end's folder says about it. */
export interface BackendKind<Settings> {
  readonly name: string;
  /** Whether it can be paid in a coin, to a destination of this kind. */
  accepts(coin: CoinTerms, kind: Destination['kind']): boolean;
  /** How many confirmations of a coin it can wait for, where it settles payments itself. */
  getMaxConfirmations?(coin: CoinTerms): number;
  /**
   * @param terms the coins that it may find payments of
   * @returns undefined when the settings do not name one
   */
  open(settings: Settings, terms: PaymentTerms): PaymentBackend | undefined;
}
