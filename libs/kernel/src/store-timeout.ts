import { StoreUnavailableError } from './ports.ts';

/** @throws StoreUnavailableError where a store does not answer in time; what it answers later is for nobody */
export function withStoreTimeout<Answer>(milliseconds: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new StoreUnavailableError('the event store did not answer in time'));
    const timer = setTimeout(late, milliseconds);
    answer.then(
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
