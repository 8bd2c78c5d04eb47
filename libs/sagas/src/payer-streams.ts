import type { HoldCommand } from '#domain';
import type { Cause } from '#kernel';

/** The write paths of all that can pay: `HeldFunds` is. */
export interface PayerStreams {
  /**
   * @param payer a stream, such as `account-…`
   * @throws Rejection as decided, StoreUnavailable
   */
  run(payer: string, command: HoldCommand, cause: Cause): Promise<unknown>;
}
