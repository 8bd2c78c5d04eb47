import { StoreUnavailableError } from './ports.ts';

/** Rejects with StoreUnavailableError if `promise` is not settled after `milliseconds`. A later result is ignored. */
export function withStoreTimeout<Result>(
  milliseconds: number,
  promise: Promise<Result>,
  problem = 'the event store did not respond in time',
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onTimeout = () => reject(new StoreUnavailableError(problem));
    const timer = setTimeout(onTimeout, milliseconds);
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
