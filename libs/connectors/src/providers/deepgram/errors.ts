/** Error responses of Deepgram: https://developers.deepgram.com/docs/errors */
import type { UpstreamError } from '#application';
import { createKeyError, toUpstreamErrorFromStatus } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';

/** Returns Deepgram's id of a response. */
export function getRequestId(headers: ResponseHeaders): string | undefined {
  const id = headers['dg-request-id'];
  return parseProviderRequestId({ id });
}

export function toDeepgramError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const providerRequestId = getRequestId(headers);
  // Deepgram responds with 403 if the key lacks a permission.
  if (status === 403) return createKeyError(status).withDetails({ vendorId: providerRequestId });
  // Deepgram responds with 415 if it cannot read the file.
  const effectiveStatus = status === 415 ? 400 : status;
  return toUpstreamErrorFromStatus(effectiveStatus, headers, { upstreamMessage: parseErrorMessage(body) }).withDetails({
    status,
    vendorId: providerRequestId,
  });
}

/** Converts the error response of a call that checks the key. A key that is limited to other calls gets 403. */
export function toKeyCheckError(status: number, headers: ResponseHeaders): UpstreamError {
  return toUpstreamErrorFromStatus(status, headers);
}

/** The body is `{ err_code, err_msg }`, `{ category, message, details }`, or plain text. */
function parseErrorMessage(body: string): string | undefined {
  try {
    const { err_msg, details, message } = JSON.parse(body) as Readonly<Record<string, unknown>>;
    return [err_msg, details, message].find((value): value is string => typeof value === 'string' && value !== '');
  } catch {
    const text = body.trim(); // not JSON
    return text === '' || text.startsWith('<') || text.length > 500 ? undefined : text;
  }
}
