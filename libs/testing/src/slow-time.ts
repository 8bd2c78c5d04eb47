const FACTOR = 50;

/**
 * Lets `performance.now` advance more slowly during `work`, so that time limits on single steps of a request do not pass
 * on a slow host. For tests in which these limits are not the subject.
 * @param work gets a function that advances `performance.now` by a number of milliseconds, for a limit that is to pass
 */
export async function slowTime<T>(work: (advance: (milliseconds: number) => void) => Promise<T>): Promise<T> {
  const { now } = performance;
  const startedAt = performance.now();
  let advanced = 0;
  performance.now = () => startedAt + (now.call(performance) - startedAt) / FACTOR + advanced;
  try {
    return await work((milliseconds) => {
      advanced += milliseconds;
    });
  } finally {
    performance.now = now;
  }
}
