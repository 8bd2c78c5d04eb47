import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from './start-error.ts';

/**
 * How long a start waits for the database. A busy machine, such as one on which all processes start again after a power
 * failure, may need many seconds for one connection, and PostgreSQL recovers before it accepts any.
 */
export const START_DEADLINE_MS = 60_000;
const RETRY_DELAY_MS = 100;
/** Classes of SQLSTATE that mean: not now. Connection failures, lack of resources, and operator intervention. */
const TRANSIENT_ERROR_CLASSES: ReadonlySet<string> = new Set(['08', '53', '57']);

/**
 * Retries `attempt` while the database does not respond or cannot serve yet, until the deadline.
 * @param reportRetry is called with the error before each further attempt
 * @throws the last error of `attempt`, at once if a retry cannot change it
 */
export async function retryUntilStartDeadline<T>(
  attempt: () => Promise<T>,
  reportRetry: (error: unknown) => void,
  deadlineMs = START_DEADLINE_MS,
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isTransient(error) || performance.now() > deadline) throw error;
      reportRetry(error);
      await delay(RETRY_DELAY_MS);
    }
  }
}

/** Whether a later attempt may succeed: the server did not respond at all, or responded that it cannot serve now. */
export function isTransient(error: unknown): boolean {
  if (error instanceof StartError) return false;
  const { severity, code = '' } = error as { readonly severity?: string; readonly code?: string };
  return severity === undefined || TRANSIENT_ERROR_CLASSES.has(code.slice(0, 2));
}
