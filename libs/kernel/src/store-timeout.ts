import { StoreUnavailableError } from './ports.ts';

/**
 * Rejects with StoreUnavailableError if `promise` is not settled after `milliseconds`. A later result is ignored. Every
 * append and every charge has such a timeout: a delay with an AbortSignal would cost 20 µs, which this does not.
 * @param onTimeout called before the rejection, since the promise itself may reject with the same error
 */
export function withStoreTimeout<Result>(
  milliseconds: number,
  promise: Promise<Result>,
  problem = 'the event store did not respond in time',
  onTimeout = (): void => {},
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      onTimeout();
      reject(new StoreUnavailableError(problem));
    }, milliseconds);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
