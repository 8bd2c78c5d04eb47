/** Why a request with a key that was used before gets no response. */
const RETRY_AFTER_SECONDS = 2;

export const IDEMPOTENCY_ERROR_TYPES = [
  'idempotency_key_reused',
  'idempotency_in_progress',
  'idempotency_answer_lost',
] as const;

/** What an error message calls the key: the header, the payment, or the content of the request. */
export type IdempotencyKeySource = 'Idempotency-Key' | 'payment' | 'content';

/** The key was used before, and this request cannot get the response of the earlier one, or not yet. */
export class IdempotencyConflictError extends Error {
  override readonly name = 'IdempotencyConflictError';

  constructor(
    readonly type: (typeof IDEMPOTENCY_ERROR_TYPES)[number],
    message: string,
    readonly source: IdempotencyKeySource,
    readonly retryAfterSeconds?: number,
  ) {
    super(message);
  }
}

export function keyReusedError(source: IdempotencyKeySource): IdempotencyConflictError {
  return new IdempotencyConflictError('idempotency_key_reused', `This ${source} was used with another request`, source);
}

export function inProgressError(source: IdempotencyKeySource): IdempotencyConflictError {
  const message = `A request with this ${source} is in progress; retry when it has finished`;
  return new IdempotencyConflictError('idempotency_in_progress', message, source, RETRY_AFTER_SECONDS);
}

export function responseLostError(source: IdempotencyKeySource): IdempotencyConflictError {
  const message = `The request with this ${source} was charged, but its response was lost; a new request is charged again`;
  return new IdempotencyConflictError('idempotency_answer_lost', message, source);
}
