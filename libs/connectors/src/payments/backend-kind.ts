import type { PaymentBackend } from '#application';
import type { Coin, Destination } from '#domain';

/** What the index of a back end's folder says about it. */
export interface BackendKind<Settings> {
  readonly name: string;
  /** What it can be paid in, and to where. */
  readonly takes: readonly { readonly coin: Coin; readonly kind: Destination['kind'] }[];
  /** @returns undefined when the settings do not name one */
  open(settings: Settings): PaymentBackend | undefined;
}
