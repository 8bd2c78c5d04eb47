/** Error responses of data providers. */

import { UpstreamError } from '#application';
import { type JsonObject } from '#kernel';
import { createKeyError, toUpstreamErrorFromStatus } from '../../http/json-http-client.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';

/** Matches messages about the operator's account at the provider, which can have any status. */
const ACCOUNT_ERROR =
  /api[ _-]?key|access[ _-]?token|unauthori[sz]ed|credential|subscription|(out of|insufficient|no) credits|insufficient (balance|funds)|\b(plan|usage)[ _-]limit|\bquota\b/i;
/** Matches what providers respond with status 403 to a missing or invalid key. */
const KEY_ERROR = /api[ _-]?key|access[ _-]?token|unauthori[sz]ed|credential|unregistered callers|^\W*forbidden\W*$/i;
/** Fields in which providers put their messages. */
const FIELDS = ['message', 'error', 'errors', 'detail', 'details', 'error_message', 'msg', 'title', 'description'];
const MAX_DEPTH = 4;

export function toDataError(status: number, headers: ResponseHeaders, text: string): UpstreamError {
  const message = parseMessage(text);
  const isAccountError = ACCOUNT_ERROR.test(text) || ACCOUNT_ERROR.test(message ?? '');
  if (status === 403 && KEY_ERROR.test(message ?? text)) return createKeyError(status);
  if (status === 404) {
    const details = isAccountError ? {} : { upstreamMessage: message };
    return new UpstreamError('invalid_request', 'The provider found no results', { status, ...details });
  }
  if (isAccountError && (status === 400 || status === 422))
    return new UpstreamError('upstream_error', 'The provider does not serve this gateway', { status });
  return toUpstreamErrorFromStatus(status, headers, { upstreamMessage: message });
}

function parseMessage(text: string): string | undefined {
  try {
    return findText(JSON.parse(text), MAX_DEPTH);
  } catch {
    return undefined; // invalid JSON
  }
}

/**
 * Finds the first string in `FIELDS` that is not blank, down to `depth` levels. Only the first element of an array is
 * searched.
 */
function findText(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (typeof value !== 'object' || value === null || depth === 0) return undefined;
  const inside = Array.isArray(value) ? value.slice(0, 1) : FIELDS.map((name) => (value as JsonObject)[name]);
  for (const item of inside) {
    const text = findText(item, depth - 1);
    if (text !== undefined) return text;
  }
  return undefined;
}
