import type { Refused } from '../provider/faults.ts';
import { type Call, Refusal } from '../router.ts';

/** An error in Anthropic's shape. */
export function refusal(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Refusal {
  return new Refusal(status, { type: 'error', error: { type, message }, request_id: 'req_sandbox' }, headers);
}

export function invalid(message: string): Refusal {
  return refusal(400, 'invalid_request_error', message);
}

/** Versions of the protocol. The newer one takes no sampling parameters. */
const VERSIONS = ['2023-06-01', '2026-10-21'] as const;
export type Version = (typeof VERSIONS)[number];

/** Any key will do, but there must be one, and the version of the protocol. */
export function assertHeaders({ request: { headers } }: Call): Version {
  if (!headers['x-api-key'] && !/^Bearer \S/.test(headers.authorization ?? '')) {
    throw refusal(401, 'authentication_error', 'x-api-key header is required');
  }
  const given = headers['anthropic-version'];
  if (given === undefined) throw invalid('anthropic-version: header is required');
  const version = VERSIONS.find((each) => each === given);
  if (!version) throw invalid(`anthropic-version: "${given}" is not a valid version`);
  return version;
}

/** What Anthropic answers when the sandbox is instructed to fail. */
export function refusalAsTold(refused: Refused): Refusal {
  switch (refused) {
    case '400':
      return invalid('messages: Invalid request, as the sandbox was instructed.');
    case '429': {
      const message = "This request would exceed your organization's rate limit, as the sandbox was instructed.";
      return refusal(429, 'rate_limit_error', message, { 'retry-after': '1' });
    }
    case '500':
      return refusal(500, 'api_error', 'Internal server error');
    case 'overloaded':
      return refusal(529, 'overloaded_error', 'Overloaded');
  }
}
