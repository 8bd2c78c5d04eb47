/** ElevenLabs' errors: an object in `detail`, or a list of what is wrong with which field. */
import type { Refused } from '../../provider/faults.ts';
import { type Call, Refusal } from '../../router.ts';

export function refused(status: number, code: string, message: string): Refusal {
  return new Refusal(status, { detail: { status: code, message } });
}

export function invalid(loc: readonly string[], type: string, msg: string): Refusal {
  return new Refusal(422, { detail: [{ type, loc, msg, input: null }] });
}

export function assertKey({ request }: Call): void {
  if (!request.headers['xi-api-key'])
    throw refused(
      401,
      'needs_authorization',
      'Neither authorization header nor xi-api-key received, please provide one.',
    );
}

export function refusalAsTold(kind: Refused): Refusal {
  switch (kind) {
    case '400':
      return refused(400, 'invalid_request', 'As the sandbox was instructed.');
    case '429':
      return refused(429, 'too_many_concurrent_requests', 'Too many concurrent requests.');
    case '500':
      return refused(500, 'internal_error', 'As the sandbox was instructed.');
    case 'overloaded':
      return refused(503, 'system_busy', 'Our services are experiencing high traffic.');
  }
}
