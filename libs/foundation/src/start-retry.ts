import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '#kernel';
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
 * Errors of a network or server that is not up yet. ENOTFOUND is among them, although an invalid hostname causes it too:
 * the name servers of Docker and Kubernetes do not know a service that is not running, as after a restart of the host.
 */
const TRANSIENT_NETWORK_ERRORS: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['EAI_AGAIN', 'ENOTFOUND'],
]);
/** Errors without a code, of `pg` and `pg-pool`: the server closed the connection, or did not respond in time. */
const CONNECTION_LOSS =
  /^(Connection terminated\b|timeout expired$|timeout exceeded when trying to connect$|Query read timeout$)/;

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

/**
 * Whether a later attempt may succeed: the server did not respond, or responded that it cannot serve now. Other errors,
 * such as those of an invalid setting, end the start at once.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof StoreUnavailableError) return !isRejection(error.cause) || isTransient(error.cause);
  if (!(error instanceof Error) || error instanceof StartError) return false;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code === undefined) return CONNECTION_LOSS.test(message);
  if (isRejection(error)) return TRANSIENT_ERROR_CLASSES.has(code.slice(0, 2));
  const hasNoSocketFile = code === 'ENOENT' && syscall === 'connect'; // the server creates the file when it starts
  return hasNoSocketFile || TRANSIENT_NETWORK_ERRORS.has(code);
}

/** Whether PostgreSQL has responded with this error. */
export function isRejection(error: unknown): error is Error {
  return error instanceof Error && 'severity' in error;
}
