/** What Google says when it refuses or fails: https://ai.google.dev/gemini-api/docs/troubleshooting */
import { UpstreamError } from '#application';
import { MESSAGE_REJECTED } from '../../http/json-http-client.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';
import { parseRetryAfter } from '../../http/retry-after.ts';

interface Said {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** An answer with a status that is no success. */
export function googleRefusal(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const said = saidIn(body);
  const more = { status, ...parseRetryAfter(headers) };
  if (status === 429)
    return new UpstreamError('rate_limited', 'The upstream is limiting requests; try again later', more);
  if (status === 408 || status === 504) return new UpstreamError('timeout', 'The upstream took too long', more);
  if (status === 401 || status === 403 || status === 503 || isOurs(said))
    return new UpstreamError('upstream_unavailable', 'The upstream does not serve at present', more);
  if (status !== 400) return new UpstreamError('upstream_error', `The upstream answered with status ${status}`, more);
  const words = typeof said.message === 'string' ? { upstreamMessage: said.message } : {};
  return new UpstreamError('invalid_request', MESSAGE_REJECTED, { ...more, ...words });
}

/** The house's key or its billing: nothing that the caller could mend. */
function isOurs({ status, details }: Said): boolean {
  if (status === 'FAILED_PRECONDITION' || status === 'PERMISSION_DENIED') return true;
  return Array.isArray(details) && details.some((each) => each?.reason === 'API_KEY_INVALID');
}

function saidIn(body: string): Said {
  try {
    return JSON.parse(body).error ?? {};
  } catch {
    return {};
  }
}
