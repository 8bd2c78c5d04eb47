import {
  AccessDeniedError,
  EventStoreDBClient,
  InvalidArgumentError,
  MaxAppendSizeExceededError,
  StreamDeletedError,
  TimeoutError,
} from '@eventstore/db-client';
import { AppendTooLargeError, StoreUnavailableError } from '#kernel';

/** So long an append is sent again that the server gives up on; then it is unavailable. */
const RETRY_TIMEOUT_MS = 4_000;

/**
 * How long a server may be silent until the connection is given up, together, and how long a node of a cluster may take to say who
 * leads it. The client itself waits 10 s, 10 s and 5 s. Parameters of the connection string win.
 */
const DEFAULTS = { keepAliveInterval: 2_000, keepAliveTimeout: 2_000, gossipTimeout: 2 /* seconds */ };

/** Refusals, which a retry cannot change. */
const PERMANENT_ERRORS = [AccessDeniedError, InvalidArgumentError, StreamDeletedError];

/** Internal calls of the client, which fail in its own code. */
interface ClientInternals {
  supports(): Promise<boolean>;
  handleError(client: unknown, error: Error): Promise<void>;
}

/**
 * A client that appends with one call per append, and that survives a cluster that is gone.
 *
 * `supports`: where the server knows it, the client would send all appends through one shared call, `BatchAppend`. In
 * version 6.2.1 that can end our process and lose answers (repaired only in its successor, KurrentDB-Client-NodeJS pull
 * request 523): all clients of a process share one table of pending appends, and
 *  - when one of these calls breaks, the appends of all others are rejected, and their answers, which still come, throw
 *    in an event handler, where nothing can catch it;
 *  - appends that wait for the socket at that moment are rejected without a listener, which ends the process too;
 *  - they have no deadline: those on a call that the server ends in good order are never answered.
 * The client decides by `supports`, which nothing else asks that we use. What it costs is throughput: one process makes
 * 6,000 appends a second instead of 17,000, at 140 µs each instead of 60 (measured against a server in memory).
 *
 * `handleError`: after a failed call the client looks at its connection, and does not wait for what it finds. When it
 * finds one that is just failing to be made, because no node of the cluster answers, that is an unhandled rejection.
 */
export function connect(connectionString: string): EventStoreDBClient {
  const client = withoutWarning(() => EventStoreDBClient.connectionString(applyConnectionDefaults(connectionString)));
  const { handleError } = client as unknown as ClientInternals;
  return Object.assign(client, {
    supports: async () => false,
    handleError: (...failure: Parameters<typeof handleError>) => handleError(...failure).catch(() => {}), // reported by the call
  });
}

/** A connection string with our defaults for what it does not say. The client reads the names in either case, and so do we. */
export function applyConnectionDefaults(connectionString: string): string {
  const trimmed = connectionString.replace(/[?&]+$/, '');
  const [, query = ''] = trimmed.slice(trimmed.lastIndexOf('@') + 1).split('?'); // a password may have any sign
  const parameterNames = new Set(query.split('&').map((pair) => pair.split('=')[0]?.toLowerCase()));
  const missing = Object.entries(DEFAULTS).filter(([name]) => !parameterNames.has(name.toLowerCase()));
  const parameters = missing.map(([name, value]) => `${name}=${value}`).join('&');
  return parameters === '' ? trimmed : `${trimmed}${query === '' ? '?' : '&'}${parameters}`;
}

/** The client prints a recommendation of longer intervals on standard error, where nobody has asked for one. */
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

/** What a failed call means to its caller: the answer itself where it is a refusal, else that there was no answer. */
export function toStoreError(problem: string, error: unknown): Error {
  if (error instanceof StoreUnavailableError) return error;
  if (error instanceof MaxAppendSizeExceededError)
    return new AppendTooLargeError(`the server takes ${error.maxAppendSize} bytes in an append`, { cause: error });
  if (PERMANENT_ERRORS.some((ErrorClass) => error instanceof ErrorClass)) return error as Error;
  return new StoreUnavailableError(problem, { cause: error });
}

/**
 * Sends an append again with the same ids where the server says that it has given up on it: so it does with one that arrives
 * while the same append is in flight, after two seconds, and then answers as for one that is stored.
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

/** gRPC's code for credentials that are refused; the client has one class for these and for rights that are missing. */
export const UNAUTHENTICATED = 16;

/** The server refuses the user that it is asked as. The message is the end of a sentence that begins with the server. */
export class EventStoreAccessError extends Error {
  override readonly name = 'EventStoreAccessError';
}

/** @throws EventStoreAccessError that names the right; whatever else `call` throws */
export async function assertAccess(permission: string, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    const reason = error instanceof StoreUnavailableError ? error.cause : error;
    if (!(reason instanceof AccessDeniedError)) throw error;
    const isUnknown = reason.code === UNAUTHENTICATED;
    throw new EventStoreAccessError(
      isUnknown ? 'refuses the credentials in EVENTSTORE_URL' : `does not let its user ${permission}`,
      {
        cause: error,
      },
    );
  }
}
