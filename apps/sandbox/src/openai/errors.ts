import type { Refused } from '../provider/faults.ts';
import { type Call, Refusal } from '../router.ts';

/** An error in OpenAI's shape. */
export function refusal(
  status: number,
  message: string,
  param: string | null = null,
  code: string | null = null,
  type = 'invalid_request_error',
  headers: Readonly<Record<string, string>> = {},
): Refusal {
  return new Refusal(status, { error: { message, type, param, code } }, headers);
}

/** Any key will do, but there must be one. */
export function assertKey({ request }: Call): void {
  if (/^Bearer \S/.test(request.headers.authorization ?? '')) return;
  const message =
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth " +
    '(i.e. Authorization: Bearer YOUR_KEY).';
  throw refusal(401, message);
}

/** What OpenAI says when the sandbox is told to fail. */
export function refusalAsTold(refused: Refused): Refusal {
  switch (refused) {
    case '400':
      return refusal(400, 'Invalid request, as the sandbox was told.', 'messages', 'invalid_value');
    case '429': {
      const message = 'Rate limit reached for requests, as the sandbox was told.';
      return refusal(429, message, null, 'rate_limit_exceeded', 'requests', { 'retry-after': '1' });
    }
    case '500': {
      const message = 'The server had an error while processing your request. Sorry about that!';
      return refusal(500, message, null, null, 'server_error');
    }
    case 'overloaded':
      return refusal(
        503,
        'The engine is currently overloaded, please try again later',
        null,
        null,
        'service_unavailable_error',
      );
  }
}
