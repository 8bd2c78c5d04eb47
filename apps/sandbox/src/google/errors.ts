/** Errors in Google's format: https://cloud.google.com/apis/design/errors */
import type { ErrorFault } from '../provider/faults.ts';
import { type Call, HttpError } from '../router.ts';

const STATUS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  422: 'FAILED_PRECONDITION',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};

export function createError(code: number, message: string, details: readonly object[] = []): HttpError {
  const detailsField = details.length > 0 ? { details } : {};
  return new HttpError(code, { error: { code, message, status: STATUS[code], ...detailsField } });
}

/** Any key is accepted, but one is required. @throws HttpError 403 */
export function assertKey(call: Call): void {
  if (call.request.headers['x-goog-api-key'] || call.query.get('key')) return;
  throw createError(
    403,
    "Method doesn't allow unregistered callers. Please use API Key or other form of API consumer identity.",
  );
}

export function createFaultError(fault: ErrorFault): HttpError {
  switch (fault) {
    case '400':
      return createError(400, 'Request contains an invalid argument, as the sandbox was instructed.');
    case '429': {
      const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1s' };
      return createError(429, 'You exceeded your current quota, as the sandbox was instructed.', [retry]);
    }
    case '500':
      return createError(500, 'An internal error has occurred, as the sandbox was instructed.');
    case 'overloaded':
      return createError(503, 'The model is overloaded. Please try again later.');
  }
}

/** Creates the error for an unknown field. */
export function unknownNameError(name: string, path: string): HttpError {
  return createError(400, `Invalid JSON payload received. Unknown name "${name}" at '${path}': Cannot find field.`);
}
