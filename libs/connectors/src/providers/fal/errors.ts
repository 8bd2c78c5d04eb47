/** What fal says when it refuses or fails: https://docs.fal.ai/model-apis/errors */
import { UpstreamError } from '#application';
import { MESSAGE_CONTENT_POLICY, MESSAGE_REJECTED } from '../../http/json-http-client.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';
import { parseRetryAfter } from '../../http/retry-after.ts';

/** What is wrong with one field: `{ loc: ["body", "prompt"], msg, type }`. */
interface FalErrorDetail {
  readonly loc?: unknown;
  readonly msg?: unknown;
  readonly type?: unknown;
}

/** About the content, not about the request's form. */
const AGAINST_POLICY: ReadonlySet<unknown> = new Set(['content_policy_violation', 'no_media_generated']);
/** The house's account, its credential and its balance: nothing that the caller could mend. */
const ACCOUNT_ERROR_STATUSES: ReadonlySet<number> = new Set([401, 402, 403]);
/** Fields that the caller knows by other names are not named to him. */
const KNOWN_FIELDS: ReadonlySet<unknown> = new Set(['prompt', 'image_url', 'negative_prompt', 'seed', 'duration']);

/** An answer of fal's with a status that is no success. */
export function toFalError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const details = { status, ...parseRetryAfter(headers) };
  if (status === 429)
    return new UpstreamError('rate_limited', 'The upstream is limiting requests; try again later', details);
  if (status === 408 || status === 504) return new UpstreamError('timeout', 'The upstream took too long', details);
  if (ACCOUNT_ERROR_STATUSES.has(status) || status === 503)
    return new UpstreamError('upstream_unavailable', 'The upstream does not serve at present', details);
  if (status === 400 || status === 422) return toInputError(body, details);
  return new UpstreamError('upstream_error', `The upstream answered with status ${status}`, details);
}

function toInputError(body: string, details: { readonly status: number }): UpstreamError {
  const { loc, msg, type } = parseErrorDetail(body);
  const upstreamDetails = { ...details, ...(typeof msg === 'string' ? { upstreamMessage: msg } : {}) };
  if (AGAINST_POLICY.has(type))
    return new UpstreamError('content_policy_violation', MESSAGE_CONTENT_POLICY, upstreamDetails);
  const field = Array.isArray(loc) ? loc.at(-1) : undefined;
  const param = KNOWN_FIELDS.has(field) ? { param: field as string } : {};
  return new UpstreamError('invalid_request', MESSAGE_REJECTED, { ...upstreamDetails, ...param });
}

function parseErrorDetail(body: string): FalErrorDetail {
  try {
    const { detail } = JSON.parse(body) as { readonly detail?: unknown };
    if (typeof detail === 'string') return { msg: detail };
    const first: unknown = Array.isArray(detail) ? detail[0] : undefined;
    return typeof first === 'object' && first !== null ? first : {};
  } catch {
    return {};
  }
}
