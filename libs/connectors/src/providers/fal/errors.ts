/** Error responses of fal: https://docs.fal.ai/model-apis/errors */
import { UpstreamError } from '#application';
import { MESSAGE_CONTENT_POLICY, MESSAGE_REJECTED, parseErrorReport } from '../../http/error-rules.ts';
import { createKeyError } from '../../http/json-http-client.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';
import { parseRetryAfter } from '../../http/retry-after.ts';

/** Error types that concern the content and not the format of the request. */
const AGAINST_POLICY: ReadonlySet<unknown> = new Set(['content_policy_violation', 'no_media_generated']);
/** Fields that have the same name in the gateway's API. Others are not reported to the caller. */
const KNOWN_FIELDS: ReadonlySet<unknown> = new Set(['prompt', 'image_url', 'negative_prompt', 'seed', 'duration']);

export function toFalError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const details = { status, ...parseRetryAfter(headers) };
  if (status === 401) return createKeyError(status);
  if (status === 429)
    return new UpstreamError('rate_limited', 'The provider is limiting requests; retry later', details);
  if (status === 408 || status === 504)
    return new UpstreamError('timeout', 'The provider took too long to respond', details);
  if (status === 403 || status === 503)
    return new UpstreamError('upstream_unavailable', 'The provider is currently unavailable', details);
  if (status === 400 || status === 422) return toInputError(body, details);
  return new UpstreamError('upstream_error', `The provider responded with status ${status}`, details);
}

function toInputError(body: string, details: { readonly status: number }): UpstreamError {
  const { message: upstreamMessage, type, param } = parseErrorReport(body);
  const upstreamDetails = { ...details, upstreamMessage };
  if (AGAINST_POLICY.has(type))
    return new UpstreamError('content_policy_violation', MESSAGE_CONTENT_POLICY, upstreamDetails);
  const field = param?.slice(param.lastIndexOf('.') + 1);
  return new UpstreamError('invalid_request', MESSAGE_REJECTED, {
    ...upstreamDetails,
    param: KNOWN_FIELDS.has(field) ? field : undefined,
  });
}
