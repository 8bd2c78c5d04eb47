/**
 * Returns the result of a promise, or that of `onTimeout` if the promise is not settled after `milliseconds`. A later
 * result of the promise is ignored. Costs no measurable time, whereas a delay with an AbortSignal would cost 20 µs.
 * @param onTimeout may throw: the returned promise then rejects with this error
 */
export function withTimeout<Result, Fallback = never>(
  milliseconds: number,
  promise: Promise<Result>,
  onTimeout: () => Fallback,
): Promise<Result | Fallback> {
  const { promise: first, resolve, reject } = Promise.withResolvers<Result | Fallback>();
  const timer = setTimeout(() => {
    try {
      resolve(onTimeout());
    } catch (error) {
      reject(error);
    }
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
  return first;
}
