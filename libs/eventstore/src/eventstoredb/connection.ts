import {
  AccessDeniedError,
  type Credentials,
  EventStoreDBClient,
  InvalidArgumentError,
  MaxAppendSizeExceededError,
  StreamDeletedError,
  TimeoutError,
} from '@eventstore/db-client';
import { AppendTooLargeError, StoreUnavailableError } from '#kernel';

/** Time within which a retry of an append that timed out on the server may start. */
const RETRY_TIMEOUT_MS = 4_000;

/**
 * Defaults that this adapter adds to a connection string. An unresponsive connection is closed after interval plus
 * timeout, in ms. A cluster node has `gossipTimeout` seconds to report the leader. The client's defaults are 10 s, 10 s
 * and 5 s.
 */
const DEFAULTS = { keepAliveInterval: 2_000, keepAliveTimeout: 2_000, gossipTimeout: 2 /* seconds */ };

/** Rejections that a retry cannot change. */
const PERMANENT_ERRORS = [AccessDeniedError, InvalidArgumentError, StreamDeletedError];

/** Internal methods of the client that are replaced because of its bugs. */
interface ClientInternals {
  supports(): Promise<boolean>;
  handleError(client: unknown, error: Error): Promise<void>;
  callArguments(options: { readonly credentials?: Credentials }, callOptions?: unknown): unknown;
}

/**
 * Creates a client that makes one call per append and survives the loss of the complete cluster.
 *
 * `supports`: if the server supports `BatchAppend`, the client sends all appends through one shared call. In version
 * 6.2.1 this can lose responses and end the process. It is fixed only in the successor of the client
 * (https://github.com/kurrent-io/KurrentDB-Client-NodeJS/pull/523). All clients of a process share one table of pending
 * appends, with these consequences:
 *  - If one shared call fails, the appends of all other calls are rejected. Their responses, which still arrive, throw
 *    in an event handler, where the error cannot be caught.
 *  - Appends that wait for the socket at that time are rejected without a listener, which also ends the process.
 *  - Appends have no deadline: if the server ends the shared call without an error, they never get a response.
 *
 * Of the calls of this adapter, only appends depend on `supports`. The cost is throughput: one process makes 6,000
 * instead of 17,000 appends per second (measured against a server in memory).
 *
 * `handleError`: after a failed call the client checks its connection without awaiting the result. If that connection
 * fails too, because no node of the cluster responds, the result is an unhandled rejection.
 *
 * `callArguments`: the client cannot replace its credentials, but each call may have its own.
 * @param findCredentials returns the credentials of a call; undefined: those of the connection string
 */
export function connect(
  connectionString: string,
  findCredentials: () => Credentials | undefined = () => undefined,
): EventStoreDBClient {
  const client = withoutWarning(() => EventStoreDBClient.connectionString(applyConnectionDefaults(connectionString)));
  const { handleError, callArguments } = client as unknown as ClientInternals;
  return Object.assign(client, {
    supports: async () => false,
    callArguments: (...[options, callOptions]: Parameters<typeof callArguments>) => {
      const credentials = options.credentials ?? findCredentials();
      return callArguments({ ...options, ...(credentials ? { credentials } : {}) }, callOptions);
    },
    handleError: (...failure: Parameters<typeof handleError>) => handleError(...failure).catch(() => {}), // reported by the call
  });
}

/** Adds the defaults of missing parameters. Names are compared without case, as by the client. */
export function applyConnectionDefaults(connectionString: string): string {
  const trimmed = connectionString.replace(/[?&]+$/, '');
  const [, query = ''] = trimmed.slice(trimmed.lastIndexOf('@') + 1).split('?'); // a password may contain "?"
  const parameterNames = new Set(query.split('&').map((pair) => pair.split('=')[0]?.toLowerCase()));
  const missing = Object.entries(DEFAULTS).filter(([name]) => !parameterNames.has(name.toLowerCase()));
  const parameters = missing.map(([name, value]) => `${name}=${value}`).join('&');
  return parameters === '' ? trimmed : `${trimmed}${query === '' ? '?' : '&'}${parameters}`;
}

/** Suppresses the client's recommendation of longer keep-alive intervals on standard error. */
function withoutWarning<T>(create: () => T): T {
  const { warn } = console;
  console.warn = (...args: unknown[]) => {
    if (!String(args[0]).startsWith(`Specified KeepAliveInterval of ${DEFAULTS.keepAliveInterval} `)) warn(...args);
  };
  try {
    return create();
  } finally {
    console.warn = warn;
  }
}

/**
 * Converts the error of a call. A rejection of the size of an append becomes AppendTooLargeError. Other permanent
 * rejections stay unchanged. All other errors become StoreUnavailableError.
 */
export function toStoreError(problem: string, error: unknown): Error {
  if (error instanceof StoreUnavailableError) return error;
  if (error instanceof MaxAppendSizeExceededError)
    return new AppendTooLargeError(`the server accepts ${error.maxAppendSize} bytes per append`, { cause: error });
  if (PERMANENT_ERRORS.some((ErrorClass) => error instanceof ErrorClass)) return error as Error;
  return new StoreUnavailableError(problem, { cause: error });
}

/**
 * Retries an append with the same ids after a TimeoutError of the server. The server returns this error after two
 * seconds if the append arrives while the same append is in flight. Once that append is stored, a retry returns its
 * result.
 */
export async function retryAbandonedAppend<Result>(append: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + RETRY_TIMEOUT_MS;
  for (;;) {
    try {
      return await append();
    } catch (error) {
      if (!(error instanceof TimeoutError) || performance.now() > deadline) throw error;
    }
  }
}

/** gRPC status for invalid credentials. The client has one error class for these and for missing rights. */
export const UNAUTHENTICATED = 16;

/**
 * The server rejects the user, the user lacks a right, or the certificate of the server is not accepted. The message has
 * no subject: callers prepend the server.
 */
export class EventStoreAccessError extends Error {
  override readonly name = 'EventStoreAccessError';
}

/**
 * Makes a call that needs a permission.
 * @throws EventStoreAccessError if the certificate of a single server is not accepted, or if the server rejects the
 *   credentials or denies the permission, which the message then names; other errors of `call`
 */
export async function assertAccess(permission: string, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    const reason = error instanceof StoreUnavailableError ? error.cause : error;
    // The client has no error class for this. To a cluster, it only reports that it has found no node.
    if (reason instanceof Error && /certificate/.test(reason.message))
      throw new EventStoreAccessError('has a certificate that this process does not accept; check EVENTSTORE_URL', {
        cause: error,
      });
    if (!(reason instanceof AccessDeniedError)) throw error;
    const isUnknown = reason.code === UNAUTHENTICATED;
    throw new EventStoreAccessError(
      isUnknown ? 'rejects the credentials in EVENTSTORE_URL' : `does not allow its user to ${permission}`,
      {
        cause: error,
      },
    );
  }
}
