import { StoreUnavailableError } from './ports.ts';

/** @throws StoreUnavailableError where a store does not answer in time; what it answers later is for nobody */
export function withStoreTimeout<Result>(milliseconds: number, promise: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onTimeout = () => reject(new StoreUnavailableError('the event store did not answer in time'));
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
