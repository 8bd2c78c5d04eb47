/** Error responses of the Gemini API: https://ai.google.dev/gemini-api/docs/troubleshooting */
import { MESSAGE_PROVIDER_UNAVAILABLE, UpstreamError } from '#application';
import { MESSAGE_RATE_LIMITED, MESSAGE_REJECTED } from '../../http/error-rules.ts';
import { createKeyError, MESSAGE_TIMEOUT } from '../../http/json-http-client.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';
import { parseRetryAfter } from '../../http/retry-after.ts';

interface GoogleError {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

export function toGoogleError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const error = parseError(body);
  const details = { status, ...(findRetryDelay(error) ?? parseRetryAfter(headers)) };
  if (status === 401 || isKeyError(error)) return createKeyError(status);
  if (status === 429) return new UpstreamError('rate_limited', MESSAGE_RATE_LIMITED, details);
  if (status === 408 || status === 504) return new UpstreamError('timeout', MESSAGE_TIMEOUT, details);
  if (status === 403 || status === 503 || error.status === 'FAILED_PRECONDITION')
    return new UpstreamError('upstream_unavailable', MESSAGE_PROVIDER_UNAVAILABLE, details);
  if (status !== 400)
    return new UpstreamError('upstream_error', `The provider responded with status ${status}`, details);
  const messageDetails = typeof error.message === 'string' ? { upstreamMessage: error.message } : {};
  return new UpstreamError('invalid_request', MESSAGE_REJECTED, { ...details, ...messageDetails });
}

/** Whether the API key is invalid, which has status 400, or has no permission, which has status 403. */
function isKeyError({ status, details }: GoogleError): boolean {
  if (status === 'PERMISSION_DENIED') return true;
  return Array.isArray(details) && details.some((detail) => detail?.reason === 'API_KEY_INVALID');
}

/** Returns the delay that Google reports in an error instead of a header, such as `"retryDelay": "34s"`. */
function findRetryDelay({ details }: GoogleError): ReturnType<typeof parseRetryAfter> | undefined {
  const delays = (Array.isArray(details) ? details : []).map((detail) => /^(\d+(?:\.\d+)?)s$/.exec(detail?.retryDelay));
  const [, seconds] = delays.find((match) => match !== null) ?? [];
  return seconds === undefined ? undefined : parseRetryAfter({ 'retry-after': seconds });
}

function parseError(body: string): GoogleError {
  try {
    return JSON.parse(body).error ?? {};
  } catch {
    return {}; // invalid JSON
  }
}
