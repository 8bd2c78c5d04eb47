import type { PaymentBackend } from '#application';
import type { Coin } from '#domain';

/** What the index of a back end's folder says about it. */
export interface BackendKind<Settings> {
  readonly name: string;
  /** What it can be paid in. */
  readonly coins: readonly Coin[];
  /** @returns undefined when the settings do not name one */
  open(settings: Settings): PaymentBackend | undefined;
}
