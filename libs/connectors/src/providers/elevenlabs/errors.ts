/** Error responses of ElevenLabs: https://elevenlabs.io/docs/eleven-api/resources/errors */
import { UpstreamError } from '#application';
import { parseErrorReport } from '../../http/error-rules.ts';
import { toUpstreamErrorFromStatus } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';

/** Returns ElevenLabs' id of a response. */
export function getRequestId(headers: ResponseHeaders): string | undefined {
  const id = headers['request-id'];
  return parseProviderRequestId({ id });
}

export function toElevenLabsError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  return toUpstreamErrorFromStatus(status, headers, { upstreamMessage: parseErrorReport(body).message }).withDetails({
    vendorId: getRequestId(headers),
  });
}

/** A key that is limited to text to speech gets 401 with this status from other calls. */
const MISSING_PERMISSIONS = 'missing_permissions';

/** Converts the error response of a call that checks the key. */
export function toKeyCheckError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  return body.includes(MISSING_PERMISSIONS)
    ? new UpstreamError('upstream_error', 'The key is not allowed to make the call that checks it', { status })
    : toElevenLabsError(status, headers, body);
}
