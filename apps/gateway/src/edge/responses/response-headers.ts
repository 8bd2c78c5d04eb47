/** Sets the headers that forbid shared caches to store responses, and browsers to guess their type. */
import type { FastifyReply } from 'fastify';
import type { Settings } from '#foundation';
import { ANTHROPIC_VERSION_HEADER } from '../errors/error-formats.ts';
import { ACCOUNT_HEADERS } from '../pay-per-request/credentials.ts';
import { addReceipt } from '../pay-per-request/receipts.ts';

/** All request headers that may contain a credential, of an account or of a payment. */
const CREDENTIAL_HEADERS = ['authorization', ...ACCOUNT_HEADERS];
const VARY = CREDENTIAL_HEADERS.join(', ');

/** One year, as RFC 6797 recommends. Other hosts of the domain may lack TLS, so they are not included. */
const STRICT_TRANSPORT_SECURITY = 'max-age=31536000';

/** Returns the headers that every response has, even one to a request that is not valid HTTP. */
export function getSecurityHeaders({ publicBaseUrl }: Settings): Readonly<Record<string, string>> {
  const isHttps = publicBaseUrl?.startsWith('https:') === true;
  return {
    'x-content-type-options': 'nosniff',
    ...(isHttps ? { 'strict-transport-security': STRICT_TRANSPORT_SECURITY } : {}),
  };
}

/**
 * Completes the headers of a response that is about to be sent. Must be called for each response after its status and
 * its other headers are set: by `handleOnSend`, and by code that writes a response without Fastify.
 */
export function completeHeaders(reply: FastifyReply): void {
  addReceipt(reply);
  setCacheHeaders(reply);
}

/**
 * Forbids caches to store the response, unless its operation is `cacheable`, it succeeded, and the caller sent no
 * credential. Shared caches only protect responses to requests with Authorization by themselves (RFC 9111, 3.5): other
 * credentials are ordinary headers to them. Overwrites `cache-control`, also that of a replayed response.
 */
export function setCacheHeaders(reply: FastifyReply): void {
  const { headers, routeOptions } = reply.request;
  const operation = routeOptions?.config?.operation;
  const hasCredential = CREDENTIAL_HEADERS.some((name) => name in headers);
  const isCacheable = operation?.cacheable === true && !hasCredential && reply.statusCode < 400;
  // The `Payment` scheme requires `private` in a response with a receipt.
  if (!isCacheable)
    reply.header('cache-control', reply.hasHeader('payment-receipt') ? 'private, no-store' : 'no-store');
  // A cached response to an anonymous caller must not be sent to a caller whose credential may be invalid.
  if (isCacheable && operation.auth === 'public') return;
  reply.header('vary', operation?.sharedWithAnthropic ? `${VARY}, ${ANTHROPIC_VERSION_HEADER}` : VARY);
}
