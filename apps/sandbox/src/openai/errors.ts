import type { ErrorFault } from '../provider/faults.ts';
import { type Call, type Handler, HttpError, type Routes } from '../router.ts';

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

/** Creates the error for a model that the provider does not have, or no longer has. */
export function createModelError(provider: string, id: string): HttpError {
  if (provider === 'openrouter') return invalidRequestError(400, `${id} is not a valid model ID`);
  const message = `The model \`${id}\` does not exist or you do not have access to it.`;
  return invalidRequestError(404, message, null, 'model_not_found');
}

/** The formats of providers whose errors differ from OpenAI's. */
const ERROR_FORMATS: Readonly<Record<string, (error: HttpError) => HttpError>> = { openrouter: toRouterError };

/** Adds the error format of the provider to routes of OpenAI's API. */
export function withErrorFormat(provider: string, routes: Routes): Routes {
  const toFormat = ERROR_FORMATS[provider];
  if (!toFormat) return routes;
  const withFormat =
    (handler: Handler): Handler =>
    async (call) => {
      try {
        await handler(call);
      } catch (error) {
        throw error instanceof HttpError ? toFormat(error) : error;
      }
    };
  return Object.fromEntries(
    Object.entries(routes).map(([route, handler]) => [route, handler && withFormat(handler)]),
  ) as Routes;
}

/** OpenRouter's code is the status, and its errors have neither a type nor a parameter (`BadRequestResponseErrorData`). */
function toRouterError({ status, body, headers }: HttpError): HttpError {
  const { error } = body as { readonly error: Readonly<Record<string, unknown>> };
  const { message = error, metadata } = error; // the error of a body that is too large is a text
  return new HttpError(status, { error: { code: status, message, metadata } }, headers);
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
