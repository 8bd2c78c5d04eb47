/** The headers of responses and requests that the OpenAPI document describes. */

import type { OperationOptions } from './operation.ts';

/** Statuses of responses that are not final yet, and of temporary errors. */
const RETRYABLE_STATUSES = [202, 409, 429, 502, 503, 504];

export const RESPONSE_HEADERS = {
  'x-request-id': { description: 'The id of this request', schema: { type: 'string', format: 'uuid' } },
  'request-id': {
    description: 'Same as x-request-id, for Anthropic’s clients',
    schema: { type: 'string', format: 'uuid' },
  },
  'x-generation-id': {
    description: 'The id of the generation: `gen-` followed by the id of the request',
    schema: { type: 'string', pattern: '^gen-' },
  },
  'idempotent-replayed': {
    description:
      'The saved response of an earlier request with the same Idempotency-Key or proof; nothing more is charged',
    schema: { const: 'true' },
  },
  'payment-receipt': {
    description: 'The receipt of a pay-per-request payment: JSON in base64url',
    schema: { type: 'string', pattern: '^[\\w-]+$' },
  },
  'www-authenticate': {
    description:
      'The challenge to pay, for a request without the credential of an account: one header for the `Payment` scheme and one for L402',
    schema: { type: 'string', pattern: '^(Payment|L402) ' },
  },
  'x-books-behind': {
    description: 'The response may not include the latest changes, which were not available in time',
    schema: { const: 'true' },
  },
  sunset: {
    description:
      'When the model of the request ends, if that is within 30 days: from then on, requests for it get 410 (RFC 8594)',
    schema: { type: 'string', pattern: ' GMT$' },
  },
  link: {
    description: 'The model that replaces the model of the request when it ends',
    schema: { type: 'string', pattern: '; rel="successor-version"$' },
  },
  'x-cost-usd': {
    description: 'The amount that was charged, in USD: a plain decimal without exponent',
    schema: { type: 'string', pattern: '^\\d+(\\.\\d+)?$' },
  },
  'x-web-search-ignored': {
    description: 'The request contains a web search, but its model is part of the free tier: such models do not search',
    schema: { const: 'true' },
  },
  'ehbp-response-nonce': {
    description: 'The nonce with which the client decrypts the response, together with its own secret',
    schema: { type: 'string', pattern: '^[0-9a-f]{64}$' },
  },
  'x-tinfoil-usage-metrics': {
    description: 'The usage that the enclave reports, in this header or in the trailer with this name',
    schema: { type: 'string', pattern: '^prompt=' },
  },
  'retry-after': {
    description: 'Seconds to wait before the next request, if known',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'openai-poll-after-ms': {
    description: 'Milliseconds to wait before the next poll, for OpenAI’s clients',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'x-should-retry': { description: 'Repeating the request would return the same response', schema: { const: 'false' } },
};

/** For paid requests whose body is not streamed, and for requests that create something. */
export const IDEMPOTENCY_KEY_PARAMETER = {
  name: 'idempotency-key',
  in: 'header' as const,
  required: false,
  description:
    '1 to 255 printable ASCII characters. For 24 hours a request with this key is charged at most once; repeats get its response if it was saved.',
  schema: { type: 'string', pattern: '^[\\x20-\\x7e]{1,255}$' },
};

/** For paid requests. */
export const QUERY_SOURCE_PARAMETER = {
  name: 'x-query-source',
  in: 'header' as const,
  required: false,
  description: 'The source of the query in the history; any value except `ui` counts as `api`',
  schema: { type: 'string' },
};

export type ResponseHeaderOptions = Pick<
  OperationOptions,
  | 'paid'
  | 'payPerRequest'
  | 'creates'
  | 'readsAccountEvents'
  | 'priced'
  | 'searches'
  | 'streamed'
  | 'errorFormat'
  | 'polled'
>;

/** Lists the headers that a response can have in addition to x-request-id. */
export function getResponseHeaders(
  status: number,
  {
    paid,
    payPerRequest: challenge,
    creates,
    readsAccountEvents: follows,
    priced,
    searches,
    streamed,
    errorFormat,
    polled,
  }: ResponseHeaderOptions,
): readonly (keyof typeof RESPONSE_HEADERS)[] {
  const isIdempotent = (paid && !streamed) || creates;
  return [
    ...(errorFormat === 'anthropic' ? (['request-id'] as const) : []),
    ...(paid ? (['x-generation-id', 'sunset', 'link'] as const) : []),
    ...(isIdempotent && status < 300 ? (['idempotent-replayed'] as const) : []),
    ...(priced && status < 300 ? (['x-cost-usd'] as const) : []),
    ...(searches && status < 300 ? (['x-web-search-ignored'] as const) : []),
    ...(streamed && status < 300 ? (['ehbp-response-nonce', 'x-tinfoil-usage-metrics'] as const) : []),
    ...(challenge && status < 300 ? (['payment-receipt'] as const) : []),
    ...(challenge && status === 402 ? (['www-authenticate'] as const) : []),
    ...(follows && status < 300 ? (['x-books-behind'] as const) : []),
    ...(RETRYABLE_STATUSES.includes(status) || (polled && status < 300) ? (['retry-after'] as const) : []),
    ...(polled && status < 300 ? (['openai-poll-after-ms'] as const) : []),
    ...(isIdempotent && status === 409 ? (['x-should-retry'] as const) : []),
  ];
}
