import { StoreUnavailableError, type Timers } from './ports.ts';
import { withTimeout } from './timeout.ts';

export interface StoreTimeoutOptions {
  /** Text of the error. */
  readonly problem?: string;
  /** Called before the rejection, since the promise itself may reject with the same error. */
  onTimeout?(): void;
}

/**
 * Rejects with StoreUnavailableError if `promise` is not settled after `milliseconds`. A later result is ignored. Every
 * append and every charge has such a timeout.
 */
export function withStoreTimeout<Result>(
  timers: Pick<Timers, 'startTimer'>,
  milliseconds: number,
  promise: Promise<Result>,
  { problem = 'the event store did not respond in time', onTimeout }: StoreTimeoutOptions = {},
): Promise<Result> {
  return withTimeout(timers, milliseconds, promise, () => {
    onTimeout?.();
    throw new StoreUnavailableError(problem);
  });
}
