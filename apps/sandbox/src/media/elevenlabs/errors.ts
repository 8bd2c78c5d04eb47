/** ElevenLabs' errors: an object in `detail`, or, for an invalid field, a list. */
import type { ErrorFault } from '../../provider/faults.ts';
import { type Call, HttpError } from '../../router.ts';

export function createError(status: number, code: string, message: string): HttpError {
  return new HttpError(status, { detail: { status: code, message } });
}

export function invalidFieldError(loc: readonly string[], type: string, msg: string): HttpError {
  return new HttpError(422, { detail: [{ type, loc, msg, input: null }] });
}

export function assertKey({ request }: Call): void {
  if (!request.headers['xi-api-key'])
    throw createError(
      401,
      'needs_authorization',
      'Neither authorization header nor xi-api-key received, please provide one.',
    );
}

export function createFaultError(kind: ErrorFault): HttpError {
  switch (kind) {
    case '400':
      return createError(400, 'invalid_request', 'As the sandbox was instructed.');
    case '429':
      return createError(429, 'too_many_concurrent_requests', 'Too many concurrent requests.');
    case '500':
      return createError(500, 'internal_error', 'As the sandbox was instructed.');
    case 'overloaded':
      return createError(503, 'system_busy', 'Our services are experiencing high traffic.');
  }
}
