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

/**
 * Returns whether these settings are set. Backends retain the settings object, in which secrets are replaced while the
 * process runs.
 */
export function hasSettings<S, Name extends keyof S>(
  settings: S,
  ...names: readonly Name[]
): settings is S & { readonly [N in Name]: NonNullable<S[N]> } {
  return names.every((name) => settings[name] !== undefined);
}
