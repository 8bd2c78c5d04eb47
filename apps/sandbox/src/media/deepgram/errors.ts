/** Deepgram's three shapes of an error: https://developers.deepgram.com/docs/errors */
import { randomUUID } from 'node:crypto';
import type { Refused } from '../../provider/faults.ts';
import { type Call, Refusal } from '../../router.ts';

export function refused(status: number, code: string, message: string): Refusal {
  const id = randomUUID();
  return new Refusal(status, { err_code: code, err_msg: message, request_id: id }, { 'dg-request-id': id });
}

/** As newer parts of it say it. */
export function categorized(status: number, category: string, message: string, details: string): Refusal {
  return new Refusal(status, { category, message, details, request_id: randomUUID() });
}

export function assertKey({ request }: Call): void {
  if (/^(Token|Bearer) \S/i.test(request.headers.authorization ?? '')) return;
  throw refused(401, 'INVALID_AUTH', 'Invalid credentials.');
}

export function refusalAsTold(kind: Refused): Refusal {
  switch (kind) {
    case '400':
      return refused(400, 'INVALID_QUERY_PARAMETER', 'As the sandbox was instructed.');
    case '429':
      return refused(429, 'TOO_MANY_REQUESTS', 'Too many requests. Please try again later.');
    case '500':
      return categorized(500, 'INTERNAL_SERVER_ERROR', 'Internal server error.', 'As the sandbox was instructed.');
    case 'overloaded':
      return new Refusal(503, 'Service unavailable');
  }
}
