import type { ProxyError } from '../proxy-error.ts';

/** A protocol that clients use: the format of its errors and keep-alive events. */
export interface ClientProtocol {
  readonly name: string;
  /** Response headers in which its clients expect the request id. */
  readonly idHeaders: readonly string[];
  /** Returns the body of an error response. @param requestId the gateway's id, if it is known */
  formatError(failure: ProxyError, requestId: string | undefined): object;
  /** Returns the event that ends an incomplete stream. */
  formatErrorEvent(failure: ProxyError, requestId: string | undefined): string;
  /**
   * Whether the connection is closed after this event without an end of the response, because clients of the protocol
   * otherwise take an incomplete stream for a complete one.
   */
  readonly closesIncompleteStreams: boolean;
  /** An event without content, for a connection that would otherwise be idle. */
  readonly keepAlive: string;
}
