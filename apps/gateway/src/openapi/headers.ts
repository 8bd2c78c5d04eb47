/** Headers beside those of HTTP itself: those of answers, and those of paid requests. */

import type { OperationOptions } from './operation.ts';

/** Statuses of what is not there yet, and of temporary errors. */
const RETRYABLE_STATUSES = [202, 409, 429, 502, 503, 504];

export const RESPONSE_HEADERS = {
  'x-request-id': { description: 'The id of this request', schema: { type: 'string', format: 'uuid' } },
  'request-id': {
    description: 'The same, where Anthropic’s clients look for it',
    schema: { type: 'string', format: 'uuid' },
  },
  'x-generation-id': {
    description: 'The id of the generation: `gen-` and the id of the request',
    schema: { type: 'string', pattern: '^gen-' },
  },
  'idempotent-replayed': {
    description:
      'This is the answer to an earlier request with the same Idempotency-Key, or the same proof of payment; it was charged once',
    schema: { const: 'true' },
  },
  'payment-receipt': {
    description: 'The receipt for a request that was paid for by itself: JSON in base64url',
    schema: { type: 'string', pattern: '^[\\w-]+$' },
  },
  'www-authenticate': {
    description:
      'What is to be paid, where no account’s credential came: two headers, in the words of the `Payment` scheme and of L402',
    schema: { type: 'string', pattern: '^(Payment|L402) ' },
  },
  'x-books-behind': {
    description: 'The answer may be older than the last change, which could not be read in time',
    schema: { const: 'true' },
  },
  'x-cost-usd': {
    description: 'What was charged, in USD: a plain decimal, never an exponent',
    schema: { type: 'string', pattern: '^\\d+(\\.\\d+)?$' },
  },
  'ehbp-response-nonce': {
    description: 'What the answer is opened with, beside what only the sender of the request has',
    schema: { type: 'string', pattern: '^[0-9a-f]{64}$' },
  },
  'x-tinfoil-usage-metrics': {
    description: 'What the enclave says that it has used, here or in the trailer of this name',
    schema: { type: 'string', pattern: '^prompt=' },
  },
  'retry-after': {
    description: 'Seconds to wait before the next attempt, if known',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'x-should-retry': { description: 'The same request would get the same answer', schema: { const: 'false' } },
};

/** A header of requests that are paid for, or that create something. */
export const IDEMPOTENCY_KEY_PARAMETER = {
  name: 'idempotency-key',
  in: 'header' as const,
  required: false,
  description:
    'Any printable ASCII characters. For 24 hours the same request with the same key is served and charged once, and repeats get the same answer.',
  schema: { type: 'string', pattern: '^[\\x20-\\x7e]{1,255}$' },
};

/** A header of requests that are paid for. */
export const QUERY_SOURCE_PARAMETER = {
  name: 'x-query-source',
  in: 'header' as const,
  required: false,
  description: 'The source that the history shows; anything but `ui` is `api`',
  schema: { type: 'string' },
};

export type ResponseHeaderOptions = Pick<
  OperationOptions,
  'paid' | 'payPerRequest' | 'creates' | 'readsAccountEvents' | 'priced' | 'streamed' | 'errorFormat'
>;

/** Headers that an answer may have. */
export function getResponseHeaders(
  status: number,
  {
    paid,
    payPerRequest: challenge,
    creates,
    readsAccountEvents: follows,
    priced,
    streamed,
    errorFormat,
  }: ResponseHeaderOptions,
): readonly (keyof typeof RESPONSE_HEADERS)[] {
  const isIdempotent = (paid && !streamed) || creates;
  return [
    ...(errorFormat === 'anthropic' ? (['request-id'] as const) : []),
    ...(paid ? (['x-generation-id'] as const) : []),
    ...(isIdempotent && status < 300 ? (['idempotent-replayed'] as const) : []),
    ...(priced && status < 300 ? (['x-cost-usd'] as const) : []),
    ...(streamed && status < 300 ? (['ehbp-response-nonce', 'x-tinfoil-usage-metrics'] as const) : []),
    ...(challenge && status < 300 ? (['payment-receipt'] as const) : []),
    ...(challenge && status === 402 ? (['www-authenticate'] as const) : []),
    ...(follows && status < 300 ? (['x-books-behind'] as const) : []),
    ...(RETRYABLE_STATUSES.includes(status) ? (['retry-after'] as const) : []),
    ...(isIdempotent && status === 409 ? (['x-should-retry'] as const) : []),
  ];
}
