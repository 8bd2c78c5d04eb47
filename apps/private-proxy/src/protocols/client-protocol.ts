import type { ProxyError } from '../proxy-error.ts';

/** A protocol that callers speak: how errors are written in it. */
export interface ClientProtocol {
  readonly name: string;
  /** The headers in which its clients look for the id of a request. */
  readonly idHeaders: readonly string[];
  /** The body of an error. @param requestId where it is known */
  formatError(failure: ProxyError, requestId: string | undefined): object;
  /** An event that ends a stream: its answer is not whole. */
  formatErrorEvent(failure: ProxyError, requestId: string | undefined): string;
  /** An event that says nothing. */
  readonly keepAlive: string;
}
