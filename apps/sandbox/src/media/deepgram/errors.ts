/** Deepgram's error formats, two in JSON and one in plain text: https://developers.deepgram.com/docs/errors */
import { randomUUID } from 'node:crypto';
import type { ErrorFault } from '../../provider/faults.ts';
import { type Call, HttpError } from '../../router.ts';

export function createError(status: number, code: string, message: string): HttpError {
  const id = randomUUID();
  return new HttpError(status, { err_code: code, err_msg: message, request_id: id }, { 'dg-request-id': id });
}

/** Creates an error in the JSON format that has a category. */
export function createCategorizedError(status: number, category: string, message: string, details: string): HttpError {
  return new HttpError(status, { category, message, details, request_id: randomUUID() });
}

export function assertKey({ request }: Call): void {
  if (/^(Token|Bearer) \S/i.test(request.headers.authorization ?? '')) return;
  throw createError(401, 'INVALID_AUTH', 'Invalid credentials.');
}

export function createFaultError(kind: ErrorFault): HttpError {
  switch (kind) {
    case '400':
      return createError(400, 'INVALID_QUERY_PARAMETER', 'As the sandbox was instructed.');
    case '429':
      return createError(429, 'TOO_MANY_REQUESTS', 'Too many requests. Please try again later.');
    case '500':
      return createCategorizedError(
        500,
        'INTERNAL_SERVER_ERROR',
        'Internal server error.',
        'As the sandbox was instructed.',
      );
    case 'overloaded':
      return new HttpError(503, 'Service unavailable');
  }
}
