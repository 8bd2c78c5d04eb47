/** The delay that a provider requires before the next request. */

/** Longer values are reduced to this, because the endpoint is avoided until the delay has passed. */
const MAX_RETRY_AFTER_SECONDS = 3_600;

/**
 * Parses `retry-after-ms`, which OpenAI and Azure send, or else `Retry-After` in seconds or as a date (RFC 9110,
 * 10.2.3). A time in the past becomes 0.
 * @returns an empty object if there is no valid value
 */
export function parseRetryAfter(headers: Readonly<Record<string, unknown>>): { readonly retryAfterSeconds?: number } {
  const header = headers['retry-after'];
  const milliseconds = Number(headers['retry-after-ms'] ?? Number.NaN);
  if (Number.isFinite(milliseconds)) return toRetryAfter(milliseconds / 1_000);
  if (typeof header !== 'string' || header === '') return {};
  const seconds = Number(header);
  return toRetryAfter(Number.isFinite(seconds) ? seconds : (Date.parse(header) - Date.now()) / 1_000);
}

function toRetryAfter(seconds: number): { readonly retryAfterSeconds?: number } {
  if (Number.isNaN(seconds)) return {};
  return { retryAfterSeconds: Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_SECONDS) };
}
