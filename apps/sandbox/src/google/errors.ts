/** Errors in Google's shape: https://cloud.google.com/apis/design/errors */
import type { Refused } from '../provider/faults.ts';
import { type Call, Refusal } from '../router.ts';

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

export function refusal(code: number, message: string, details: readonly object[] = []): Refusal {
  const more = details.length > 0 ? { details } : {};
  return new Refusal(code, { error: { code, message, status: STATUS[code], ...more } });
}

/** Any key will do, but there must be one. */
export function assertKey(call: Call): void {
  if (call.request.headers['x-goog-api-key'] || call.query.get('key')) return;
  throw refusal(
    403,
    "Method doesn't allow unregistered callers. Please use API Key or other form of API consumer identity.",
  );
}

export function refusalAsTold(refused: Refused): Refusal {
  switch (refused) {
    case '400':
      return refusal(400, 'Request contains an invalid argument, as the sandbox was instructed.');
    case '429': {
      const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1s' };
      return refusal(429, 'You exceeded your current quota, as the sandbox was instructed.', [retry]);
    }
    case '500':
      return refusal(500, 'An internal error has occurred, as the sandbox was instructed.');
    case 'overloaded':
      return refusal(503, 'The model is overloaded. Please try again later.');
  }
}

/** What a field says that is not there. */
export function unknownName(name: string, place: string): Refusal {
  return refusal(400, `Invalid JSON payload received. Unknown name "${name}" at '${place}': Cannot find field.`);
}
