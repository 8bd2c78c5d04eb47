import { StoreUnavailableError } from './ports.ts';
import { withTimeout } from './timeout.ts';

/**
 * Rejects with StoreUnavailableError if `promise` is not settled after `milliseconds`. A later result is ignored. Every
 * append and every charge has such a timeout.
 * @param onTimeout called before the rejection, since the promise itself may reject with the same error
 */
export function withStoreTimeout<Result>(
  milliseconds: number,
  promise: Promise<Result>,
  problem = 'the event store did not respond in time',
  onTimeout = (): void => {},
): Promise<Result> {
  return withTimeout(milliseconds, promise, () => {
    onTimeout();
    throw new StoreUnavailableError(problem);
  });
}
