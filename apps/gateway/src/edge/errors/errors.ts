/** Maps errors to statuses, codes and messages. `error-formats.ts` has the formats of their responses. */
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type FailureCode,
  FileStoreUnavailableError,
  HoldAlreadyExistsError,
  IDEMPOTENCY_ERROR_TYPES,
  IdempotencyConflictError,
  InvalidRequestError,
  TooManyRequestsError,
  UpstreamError,
} from '#application';
import type { RejectionCode } from '#domain';
import type { Log } from '#foundation';
import { Rejection, StoreUnavailableError, UnknownEventError } from '#kernel';
import { type ErrorResponse, selectErrorFormat } from './error-formats.ts';

/** The request has no valid credential that its operation accepts. */
export class UnauthorizedError extends Error {
  override readonly name = 'UnauthorizedError';
}

/** The requested object does not exist, or the caller may not see it. */
export class NotFoundError extends Error {
  override readonly name = 'NotFoundError';
}

/** The request is invalid for its route. */
export class BadRequestError extends Error {
  override readonly name = 'BadRequestError';
  readonly param: string | null;

  constructor(message: string, param: string | null = null) {
    super(message);
    this.param = param;
  }
}

/** The media type or the encoding of the body is not supported. */
export class UnsupportedMediaTypeError extends Error {
  override readonly name = 'UnsupportedMediaTypeError';
  readonly statusCode = 415;
}

/** The body, or a file in it, is larger than its route allows, or the body is too highly compressed. */
export class PayloadTooLargeError extends Error {
  override readonly name = 'PayloadTooLargeError';
  readonly statusCode = 413;
}

/** No data of the body arrived for too long. */
export class RequestTimeoutError extends Error {
  override readonly name = 'RequestTimeoutError';
  readonly statusCode = 408;
}

/** The request is forbidden for every caller. */
export class ForbiddenError extends Error {
  override readonly name = 'ForbiddenError';
  readonly statusCode = 403;
}

/** The file does not have the requested range. */
export class RangeNotSatisfiableError extends Error {
  override readonly name = 'RangeNotSatisfiableError';
  readonly statusCode = 416;
}

/** There is no capacity for the request at the moment. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/** The read model lags, so it may not show an existing object yet. */
export class ReadModelLaggingError extends Error {
  override readonly name = 'ReadModelLaggingError';

  constructor() {
    super('The requested data is not up to date yet; retry in a moment');
  }
}

/** The read models skipped an event of the requested data, so a response from them would be incorrect. */
export class ReadModelIncompleteError extends Error {
  override readonly name = 'ReadModelIncompleteError';

  constructor() {
    super('The requested data is incomplete until the operator has repaired it');
  }
}

/** `code` is OpenAI's error code, which its clients check. Without one, `type` is sent as the code. */
type ErrorDefinition = readonly [status: number, type: string, kind: string, code?: string];

const INVALID: ErrorDefinition = [400, 'invalid_request_error', 'invalid_request', 'invalid_request'];
const TOO_LONG: ErrorDefinition = [400, 'invalid_request_error', 'invalid_request', 'context_length_exceeded'];
/** Each field is valid, but not together with another one; or the provider of a data lookup rejects the fields. */
const UNPROCESSABLE: ErrorDefinition = [422, 'invalid_request_error', 'unprocessable'];
const CONFLICT: ErrorDefinition = [409, 'conflict', 'invalid_request'];
const UNAUTHORIZED: ErrorDefinition = [401, 'authentication_error', 'authentication', 'invalid_api_key'];
const FORBIDDEN: ErrorDefinition = [403, 'permission_error', 'permission_denied'];
const NOT_FOUND: ErrorDefinition = [404, 'not_found', 'not_found'];
/** The proof does not pay for this request. */
const PAYMENT_REQUIRED: ErrorDefinition = [402, 'payment_required', 'payment_required'];
const UNAVAILABLE: ErrorDefinition = [503, 'unavailable', 'server'];

const MODEL_RETIRED: ErrorDefinition = [410, 'invalid_request_error', 'not_found', 'model_retired'];

const createNotFoundDefinition = (code: string): ErrorDefinition => [404, 'invalid_request_error', 'not_found', code];
const RESOURCE_NOT_FOUND = createNotFoundDefinition('not_found');
/** By the parameter that names the missing object. */
const NOT_FOUND_BY_PARAM: ReadonlyMap<string | null, ErrorDefinition> = new Map([
  ['model', createNotFoundDefinition('model_not_found')],
  ['provider', createNotFoundDefinition('no_endpoints_found')],
  ['previous_response_id', createNotFoundDefinition('previous_response_not_found')],
]);

const REJECTIONS: Readonly<Record<RejectionCode, ErrorDefinition>> = {
  account_exists: CONFLICT,
  account_not_found: UNAUTHORIZED,
  adjustment_conflict: CONFLICT,
  // Not 402: clients would pay again, which does not help.
  challenge_exhausted: [403, 'payment_exhausted', 'permission_denied'],
  challenge_expired: PAYMENT_REQUIRED,
  challenge_mismatch: PAYMENT_REQUIRED,
  challenge_not_found: PAYMENT_REQUIRED,
  challenge_running: [409, 'payment_in_progress', 'invalid_request'],
  challenge_used: PAYMENT_REQUIRED,
  credit_conflict: CONFLICT,
  dedupe_changed: CONFLICT,
  hold_conflict: CONFLICT,
  hold_not_found: CONFLICT,
  hold_resolved: CONFLICT,
  insufficient_balance: [402, 'insufficient_balance', 'payment_required', 'insufficient_quota'],
  invalid_key_settings: INVALID,
  key_blocked: FORBIDDEN,
  key_exists: CONFLICT,
  key_expired: UNAUTHORIZED,
  key_limit_exceeded: [402, 'key_limit_exceeded', 'payment_required', 'insufficient_quota'],
  key_name_taken: CONFLICT,
  key_not_found: NOT_FOUND,
  key_revoked: UNAUTHORIZED,
  model_not_allowed: FORBIDDEN,
  name_taken: CONFLICT,
  payment_conflict: CONFLICT,
  price_list_conflict: CONFLICT,
  topup_exists: CONFLICT,
  too_many_invoices: [429, 'rate_limit_error', 'rate_limit_exceeded', 'rate_limit_exceeded'],
  too_much_borne: [429, 'rate_limit_error', 'rate_limit_exceeded', 'rate_limit_exceeded'],
  topup_not_found: NOT_FOUND,
  video_not_found: NOT_FOUND,
  no_open_cost: NOT_FOUND,
};

const FAILURES: Readonly<Record<FailureCode, ErrorDefinition>> = {
  invalid_request: INVALID,
  content_policy_violation: [400, 'content_policy_violation', 'content_policy_violation'],
  rate_limited: [429, 'rate_limit_error', 'rate_limit_exceeded', 'rate_limit_exceeded'],
  timeout: [504, 'timeout', 'timeout'],
  upstream_error: [502, 'upstream_error', 'provider_unavailable'],
  answer_too_long: [502, 'upstream_error', 'provider_unavailable'],
  upstream_unavailable: [503, 'upstream_unavailable', 'provider_unavailable'],
  client_disconnected: [499, 'client_disconnected', 'server'],
  shutdown: [503, 'shutdown', 'server'],
  not_served: [503, 'unavailable', 'server'],
  hold_used_up: [402, 'insufficient_balance', 'payment_required'],
  hold_ended: [503, 'unavailable', 'server'],
};

const STATUSES: Readonly<Record<number, ErrorDefinition>> = {
  400: INVALID,
  401: UNAUTHORIZED,
  403: FORBIDDEN,
  404: NOT_FOUND,
  405: [405, 'method_not_allowed', 'invalid_request'],
  408: [408, 'request_timeout', 'invalid_request'],
  413: [413, 'payload_too_large', 'payload_too_large'],
  414: [414, 'address_too_long', 'invalid_request'],
  415: [415, 'unsupported_media_type', 'invalid_request'],
  416: [416, 'range_not_satisfiable', 'invalid_request'],
  417: [417, 'expectation_failed', 'invalid_request'],
  426: [426, 'upgrade_required', 'invalid_request'],
  431: [431, 'headers_too_large', 'invalid_request'],
  503: [503, 'unavailable', 'server'],
};

export const INTERNAL_ERROR: ErrorResponse = {
  status: 500,
  message: 'Internal server error',
  type: 'server_error',
  kind: 'server',
  code: 'server_error',
};

/**
 * All errors that a response can have, for the documentation, apart from codes that a provider reported. A disconnected
 * client receives no response.
 */
export const ERROR_DEFINITIONS: readonly ErrorDefinition[] = [
  ...Object.values(REJECTIONS),
  ...Object.values(FAILURES),
  ...Object.values(STATUSES),
  TOO_LONG,
  UNPROCESSABLE,
  MODEL_RETIRED,
  RESOURCE_NOT_FOUND,
  ...NOT_FOUND_BY_PARAM.values(),
  ...IDEMPOTENCY_ERROR_TYPES.map((type): ErrorDefinition => [409, type, 'invalid_request']),
  [INTERNAL_ERROR.status, INTERNAL_ERROR.type, INTERNAL_ERROR.kind] as const,
].filter(([status, type, , code], i, all) => {
  const first = all.findIndex((other) => other[0] === status && other[1] === type && other[3] === code);
  return first === i && type !== 'client_disconnected';
});

/** Time before a retry of a request that was rejected for lack of capacity, or because files cannot be stored. */
const OVERLOADED_RETRY_SECONDS = 5;

/** Time before a retry after a failure of a provider or of the gateway, if nothing better is known. */
const FAILED_RETRY_SECONDS = 2;

/** Time before a proof may be sent again while its request is running. */
const RUNNING_RETRY_SECONDS = 2;

function getRetryAfter({ code, details }: Rejection): Pick<ErrorResponse, 'retryAfterSeconds'> {
  if (code === 'challenge_running') return { retryAfterSeconds: RUNNING_RETRY_SECONDS };
  return details?.until === undefined ? {} : { retryAfterSeconds: getSecondsUntil(details.until) };
}

function getSecondsUntil(instant: string): number {
  return Math.max(1, Math.ceil((Date.parse(instant) - Date.now()) / 1000));
}

/** Returns the response for an error; undefined for an unexpected error. */
export function toErrorResponse(error: unknown): ErrorResponse | undefined {
  if (error instanceof Rejection) {
    const { code, message, details } = error;
    return createErrorResponse(REJECTIONS[code as RejectionCode], message, { details, ...getRetryAfter(error) });
  }
  if (error instanceof UpstreamError) {
    const { code, status, retryAfterSeconds, param = null, upstreamCode, publicMessage } = error;
    if (code === 'invalid_request' && status === 404) return createNotFoundResponse(param ?? 'model', publicMessage);
    const extra = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return createErrorResponse(FAILURES[code], publicMessage, {
      param,
      ...extra,
      ...(upstreamCode ? { code: upstreamCode } : {}),
    });
  }
  if (error instanceof TooManyRequestsError) {
    const { message, retryAfterSeconds } = error;
    return createErrorResponse(FAILURES.rate_limited, message, { retryAfterSeconds });
  }
  if (error instanceof HoldAlreadyExistsError) return createErrorResponse(CONFLICT, error.message);
  if (error instanceof UnauthorizedError) return createErrorResponse(UNAUTHORIZED, error.message);
  if (error instanceof NotFoundError) return createErrorResponse(NOT_FOUND, error.message);
  if (error instanceof BadRequestError) return createErrorResponse(INVALID, error.message, { param: error.param });
  if (error instanceof IdempotencyConflictError) {
    const { retryAfterSeconds } = error;
    const extra = retryAfterSeconds === undefined ? { isFinal: true } : { retryAfterSeconds };
    return createErrorResponse([409, error.type, 'invalid_request'], error.message, { param: error.source, ...extra });
  }
  if (error instanceof InvalidRequestError) {
    const { status, message, param, isTooLong, code } = error;
    if (status === 404) return { ...createNotFoundResponse(param, message), ...(code ? { code } : {}) };
    if (status === 410) return createErrorResponse(MODEL_RETIRED, message, { param });
    if (status === 422) return createErrorResponse(UNPROCESSABLE, message, { param });
    return createErrorResponse(isTooLong ? TOO_LONG : INVALID, message, { param, ...(code ? { code } : {}) });
  }
  if (error instanceof ReadModelLaggingError)
    return createErrorResponse(UNAVAILABLE, error.message, { retryAfterSeconds: 1 });
  if (error instanceof ReadModelIncompleteError) return createErrorResponse(UNAVAILABLE, error.message);
  if (error instanceof OverloadedError)
    return createErrorResponse(UNAVAILABLE, error.message, { retryAfterSeconds: OVERLOADED_RETRY_SECONDS });
  if (error instanceof FileStoreUnavailableError)
    return createErrorResponse(UNAVAILABLE, error.message, { retryAfterSeconds: OVERLOADED_RETRY_SECONDS });
  if (error instanceof StoreUnavailableError) {
    return createErrorResponse(
      [503, 'unavailable', 'server'],
      'The service is temporarily unavailable; retry in a moment',
      { retryAfterSeconds: 1 },
    );
  }
  if (error instanceof UnknownEventError) {
    return createErrorResponse(
      [503, 'unavailable', 'server'],
      'The stored data was written by a newer version of this service',
    );
  }
  const status = error instanceof HttpException ? error.getStatus() : (error as { statusCode?: unknown })?.statusCode;
  const kind = typeof status === 'number' ? STATUSES[status] : undefined;
  if (kind === undefined) return undefined;
  const { message } = error as Error;
  // Fastify's message does not name the supported media type.
  const text =
    status === 415 && !(error instanceof UnsupportedMediaTypeError) ? 'The body must be application/json' : message;
  return createErrorResponse(kind, text);
}

/** Longer messages are truncated. They may quote a name, a URL or an entire conversation. */
const MAX_MESSAGE_CHARACTERS = 1_000;

function createErrorResponse(kind: ErrorDefinition, text: string, extra: Partial<ErrorResponse> = {}): ErrorResponse {
  const [status, type, kindName, code = type] = kind;
  const message =
    text.length > MAX_MESSAGE_CHARACTERS ? `${text.slice(0, MAX_MESSAGE_CHARACTERS).toWellFormed()}…` : text;
  return { status, message, type, kind: kindName, code, ...extra };
}

function createNotFoundResponse(param: string | null, message: string): ErrorResponse {
  return createErrorResponse(NOT_FOUND_BY_PARAM.get(param) ?? RESOURCE_NOT_FOUND, message, { param });
}

export function sendError(reply: FastifyReply, error: ErrorResponse): void {
  const retryAfterSeconds = error.retryAfterSeconds ?? getDefaultRetryAfter(error);
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(Math.ceil(retryAfterSeconds)));
  if (error.isFinal) reply.header('x-should-retry', 'false');
  const { headers = {}, ...format } = selectErrorFormat(reply.request);
  reply.headers(headers).status(error.status).send(format.createBody(error, reply.request.id));
}

function getDefaultRetryAfter({ status, isFinal = false }: ErrorResponse): number | undefined {
  return (status === 502 || status === 503) && !isFinal ? FAILED_RETRY_SECONDS : undefined;
}

@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(private readonly log: Log) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const expected = toErrorResponse(error);
    const logContext = { request: request.id, method: request.method, path: request.url.split('?')[0] };
    if (!expected) this.log.error({ ...logContext, err: error }, 'a request failed unexpectedly');
    else if (expected.status >= 500 && !isReportedElsewhere(error))
      this.log.warn({ ...logContext, err: error }, 'a request failed');
    if (!reply.sent) sendError(reply, expected ?? INTERNAL_ERROR);
  }
}

/**
 * Whether a line for each request would repeat what is known: that read models lag, which every attempt with an unknown
 * key shows, or a problem of the operator's account at a service, which is reported once.
 */
function isReportedElsewhere(error: unknown): boolean {
  return (
    error instanceof ReadModelLaggingError || (error instanceof UpstreamError && error.operatorProblem !== undefined)
  );
}
