/**
 * Decides who may use the proxy. The proxy pays with its own API key, so web pages must not use it: not through a form,
 * an image, a frame or a fetch, and not under a domain name that resolves to this host (DNS rebinding). Programs on
 * this host may use it.
 */
import type { FastifyRequest } from 'fastify';
import { ProxyError } from './proxy-error.ts';

/**
 * Values of `Sec-Fetch-Site` for requests that no page except the proxy's own caused. Programs do not send the header.
 * Browsers send `none` for a URL that the user entered, and `same-origin` for the proxy's own page.
 */
const NON_PAGE_FETCH_SITES: readonly unknown[] = [undefined, 'none', 'same-origin'];
const JSON_TYPE = /^application\/json\s*(;|$)/i;

type CheckedRequest = Pick<FastifyRequest, 'method' | 'url' | 'headers'> & {
  readonly raw: Pick<FastifyRequest['raw'], 'headersDistinct'>;
};

/**
 * Returns why a request is rejected, or undefined if it may be served. Checks only the method, the URL and the headers.
 * @param port the port that the proxy listens on
 */
export function getCallerRejection(
  { method, url, headers, raw }: CheckedRequest,
  port: number,
): ProxyError | undefined {
  // Node ignores all but the first one. RFC 9112, 3.2 requires 400, because other programs may read another one.
  if ((raw.headersDistinct.host?.length ?? 0) > 1) return new ProxyError(400, 'The request must have one Host header');
  const names = ['127.0.0.1', 'localhost', '[::1]'].flatMap((name) => [
    `${name}:${port}`,
    // Clients omit the default port of HTTP.
    ...(port === 80 ? [name] : []),
  ]);
  if (!names.includes(headers.host ?? '')) return createForbiddenError(`Host must be one of ${names.join(', ')}`);
  if (!url.startsWith('/')) return createForbiddenError('The request target must be a path, not a URL');
  if (headers.origin !== undefined)
    return createForbiddenError('Web pages must not use the proxy; requests must not have an Origin header');
  if (!NON_PAGE_FETCH_SITES.includes(headers['sec-fetch-site']))
    return createForbiddenError('Web pages must not use the proxy');
  if (method !== 'POST') return undefined;
  // Clients that reconnect as browsers do for `EventSource` send it, and would buy a response each time.
  if (headers['last-event-id'] !== undefined)
    return new ProxyError(400, 'An interrupted stream cannot be resumed', { param: 'Last-Event-ID', isFinal: true });
  if (!JSON_TYPE.test(headers['content-type'] ?? ''))
    return createMediaTypeError('The content type must be application/json');
  return headers['content-encoding'] === undefined
    ? undefined
    : createMediaTypeError('The body must not be compressed');
}

function createForbiddenError(message: string): ProxyError {
  return new ProxyError(403, message, { code: 'caller_refused' });
}

function createMediaTypeError(message: string): ProxyError {
  return new ProxyError(415, message, { code: 'unsupported_media_type' });
}
