import type { AccountCommand } from '#domain';
import type { Cause } from '#kernel';

type About<Type extends AccountCommand['type']> = Extract<AccountCommand, { readonly type: Type }>;

/** What sagas say about holds, whoever pays. */
export type HoldCommand = About<'KeepHold' | 'SettleHold' | 'ReleaseHold' | 'ExpireHolds' | 'AbandonHolds'>;

/** The write paths of all that can pay. */
export interface PayerStreams {
  /**
   * @param payer a stream, such as `account-…`
   * @throws Rejection as decided, StoreUnavailable
   */
  run(payer: string, command: HoldCommand, cause: Cause): Promise<unknown>;
}
