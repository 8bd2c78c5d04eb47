import type { ErrorFault } from '../provider/faults.ts';
import { type Call, HttpError } from '../router.ts';

interface Details {
  readonly param?: string;
  readonly code?: string;
}

/** Creates an error of type `invalid_request_error` in OpenAI's format. */
export function invalidRequestError(
  status: number,
  message: string,
  param: string | null = null,
  code: string | null = null,
): HttpError {
  return new HttpError(status, { error: { message, type: 'invalid_request_error', param, code } });
}

/** Creates an error of any type in OpenAI's format. */
export function createError(type: string, status: number, message: string, details: Details = {}): HttpError {
  const headers: Record<string, string> = status === 429 ? { 'retry-after': '1' } : {};
  return new HttpError(status, { error: { message, type, param: null, code: null, ...details } }, headers);
}

/** Any key is accepted, but one is required. @throws HttpError 401 */
export function assertKey({ request }: Call): void {
  if (/^Bearer \S/.test(request.headers.authorization ?? '')) return;
  const message =
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth " +
    '(i.e. Authorization: Bearer YOUR_KEY).';
  throw invalidRequestError(401, message);
}

/** Returns OpenAI's error response for a fault. */
export function createFaultError(fault: ErrorFault): HttpError {
  switch (fault) {
    case '400':
      return invalidRequestError(400, 'Invalid request, as the sandbox was instructed.', 'messages', 'invalid_value');
    case '429': {
      const message = 'Rate limit reached for requests, as the sandbox was instructed.';
      return createError('requests', 429, message, { code: 'rate_limit_exceeded' });
    }
    case '500': {
      const message = 'The server had an error while processing your request. Sorry about that!';
      return createError('server_error', 500, message);
    }
    case 'overloaded': {
      const message = 'The engine is currently overloaded, please try again later';
      return createError('service_unavailable_error', 503, message);
    }
  }
}
