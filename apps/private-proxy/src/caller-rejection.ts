/**
 * Who may ask. The proxy pays with a key of its own, so no web page may speak through it: not by a form, a picture, a frame or a
 * fetch, not under a name that it makes the browser take for this machine. Programs of this machine may.
 */
import type { FastifyRequest } from 'fastify';
import { ProxyError } from './proxy-error.ts';

/** What browsers say of a request that no page made: an address that was typed, or a page of the proxy's own. */
const NON_PAGE_FETCH_SITES: readonly unknown[] = [undefined, 'none', 'same-origin'];
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/**
 * Why a request is not heard, judged by its head alone.
 * @param port that the proxy listens on
 */
export function getCallerRejection(
  { method, url, headers }: Pick<FastifyRequest, 'method' | 'url' | 'headers'>,
  port: number,
): ProxyError | undefined {
  const names = ['127.0.0.1', 'localhost', '[::1]'].flatMap((name) => [
    `${name}:${port}`,
    // Clients leave out the port that is HTTP's own.
    ...(port === 80 ? [name] : []),
  ]);
  if (!names.includes(headers.host ?? '')) return createForbiddenError(`Host must be one of ${names.join(', ')}`);
  if (!url.startsWith('/')) return createForbiddenError('The address must be a path: this is no proxy for others');
  if (headers.origin !== undefined)
    return createForbiddenError('Web pages may not use the proxy: a request must have no Origin');
  if (!NON_PAGE_FETCH_SITES.includes(headers['sec-fetch-site']))
    return createForbiddenError('Web pages may not use the proxy');
  if (method !== 'POST') return undefined;
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
