/** What Deepgram says when it refuses or fails: https://developers.deepgram.com/docs/errors */
import type { UpstreamError } from '#application';
import { toUpstreamErrorFromStatus } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';

/** @returns the vendor's id of an answer */
export function getRequestId(headers: ResponseHeaders): string | undefined {
  const id = headers['dg-request-id'];
  return parseProviderRequestId({ id });
}

/** An answer of Deepgram's with a status that is no success. */
export function toDeepgramError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const providerRequestId = getRequestId(headers);
  // Where it cannot read a file it says so with a status of its own.
  const effectiveStatus = status === 415 ? 400 : status;
  return toUpstreamErrorFromStatus(effectiveStatus, headers, { upstreamMessage: parseErrorMessage(body) }).withDetails({
    status,
    vendorId: providerRequestId,
  });
}

/** In `{ err_code, err_msg }`, in `{ category, message, details }`, or as they are. */
function parseErrorMessage(body: string): string | undefined {
  try {
    const { err_msg, details, message } = JSON.parse(body) as Readonly<Record<string, unknown>>;
    return [err_msg, details, message].find((value): value is string => typeof value === 'string' && value !== '');
  } catch {
    const text = body.trim();
    return text === '' || text.startsWith('<') || text.length > 500 ? undefined : text;
  }
}
