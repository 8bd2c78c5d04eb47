import type { ErrorFault } from '../provider/faults.ts';
import { type Call, HttpError } from '../router.ts';

/** Creates an error in Anthropic's format. */
export function createError(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): HttpError {
  return new HttpError(status, { type: 'error', error: { type, message }, request_id: 'req_sandbox' }, headers);
}

export function invalidRequestError(message: string): HttpError {
  return createError(400, 'invalid_request_error', message);
}

/** Protocol versions. The newer one has no sampling parameters. */
const VERSIONS = ['2023-06-01', '2026-10-21'] as const;
export type Version = (typeof VERSIONS)[number];

/** Returns the requested protocol version. Any key is accepted, but one is required. @throws HttpError 401, 400 */
export function assertHeaders({ request: { headers } }: Call): Version {
  if (!headers['x-api-key'] && !/^Bearer \S/.test(headers.authorization ?? '')) {
    throw createError(401, 'authentication_error', 'x-api-key header is required');
  }
  const requestedVersion = headers['anthropic-version'];
  if (requestedVersion === undefined) throw invalidRequestError('anthropic-version: header is required');
  const version = VERSIONS.find((supported) => supported === requestedVersion);
  if (!version) throw invalidRequestError(`anthropic-version: "${requestedVersion}" is not a valid version`);
  return version;
}

/** Returns Anthropic's error response for a fault. */
export function createFaultError(fault: ErrorFault): HttpError {
  switch (fault) {
    case '400':
      return invalidRequestError('messages: Invalid request, as the sandbox was instructed.');
    case '429': {
      const message = "This request would exceed your organization's rate limit, as the sandbox was instructed.";
      return createError(429, 'rate_limit_error', message, { 'retry-after': '1' });
    }
    case '500':
      return createError(500, 'api_error', 'Internal server error');
    case 'overloaded':
      return createError(529, 'overloaded_error', 'Overloaded');
  }
}
