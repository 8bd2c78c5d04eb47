const FACTOR = 50;

/**
 * Lets `performance.now` advance more slowly during `work`, so that time limits on single steps of a request do not pass
 * on a slow host. For tests in which these limits are not the subject.
 */
export async function slowTime<T>(work: () => Promise<T>): Promise<T> {
  const { now } = performance;
  const startedAt = performance.now();
  performance.now = () => startedAt + (now.call(performance) - startedAt) / FACTOR;
  try {
    return await work();
  } finally {
    performance.now = now;
  }
}
