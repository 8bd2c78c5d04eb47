/** Writes errors in the format that the client of a request expects. */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { getMessageErrorType } from '#application/messages';
import { getPageHeaders, renderErrorPage } from '../pages/page.ts';

export interface ErrorResponse {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  /** OpenRouter's error type. */
  readonly kind: string;
  /** OpenAI's error code. */
  readonly code: string;
  readonly param?: string | null;
  readonly details?: Readonly<Record<string, string>>;
  readonly retryAfterSeconds?: number;
  /**
   * Whether a header forbids a retry, because a repeated request would get the same response. OpenAI's clients would
   * retry a 409 without this header.
   */
  readonly isFinal?: boolean;
}

interface ErrorObject {
  readonly message: string;
  readonly type: string;
  readonly code: string | number;
  readonly param?: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Writes an error as the body of a response, and as an SSE event. */
interface ErrorFormat {
  /** Response headers, for a format that is not JSON. */
  readonly headers?: Readonly<Record<string, string>>;
  createBody(error: ErrorResponse, requestId?: string): object | string;
  createEvent(error: ErrorResponse, requestId?: string): object;
}

const OPENAI = createErrorFormat(({ status, message, type, kind, code, param = null, details = {} }) => {
  return createErrorBody(status, { message, type, code, param, metadata: { error_type: kind, ...details } });
});

/** OpenRouter's schemas require an integer `code`, and no field may be null. */
const OPENROUTER = createErrorFormat(({ status, message, type, kind, param, details = {} }) => {
  const metadata = { error_type: kind, ...details };
  return createErrorBody(status, { message, type, code: status, ...(param ? { param } : {}), metadata });
});

/** Returns Anthropic's error type: by the status, but `overloaded_error` for the gateway's `upstream_unavailable`. */
export function toAnthropicErrorType({ status, type }: Pick<ErrorResponse, 'status' | 'type'>): string {
  if (type === 'upstream_unavailable') return 'overloaded_error';
  return getMessageErrorType(status);
}

/** Body and SSE event have the same format. `details.error_code` has the gateway's more specific code. */
function toAnthropicError(error: ErrorResponse, request_id: string | null = null) {
  const { message, code, param, details: extraDetails } = error;
  const details = { error_code: code, ...(param ? { param } : {}), ...extraDetails };
  return { type: 'error', error: { type: toAnthropicErrorType(error), message, details }, request_id };
}

const ANTHROPIC: ErrorFormat = { createBody: toAnthropicError, createEvent: toAnthropicError };

/** An HTML page for browsers. */
const PAGE: ErrorFormat = { headers: getPageHeaders(), createBody: renderErrorPage, createEvent: OPENAI.createEvent };

const ERROR_FORMATS = { openai: OPENAI, openrouter: OPENROUTER, anthropic: ANTHROPIC, page: PAGE } as const;

export type ErrorFormatName = keyof typeof ERROR_FORMATS;

/**
 * OpenRouter's clients for TypeScript and Python send the user agents `speakeasy-sdk/typescript … @openrouter/sdk` and
 * `speakeasy-sdk/python … openrouter`.
 */
const OPENROUTER_SDK = /@openrouter\/sdk|^speakeasy-sdk\/python .* openrouter$/;

export function isOpenRouterSdk(headers: IncomingHttpHeaders): boolean {
  return OPENROUTER_SDK.test(headers['user-agent'] ?? '');
}

/** The format unless the route or the client has another; also used for malformed requests. */
export const DEFAULT_ERROR_FORMAT: ErrorFormat = OPENAI;

/** Returns the format that the route specifies, else that of the client. */
export function selectErrorFormat(request: FastifyRequest): ErrorFormat {
  const routeFormat = request.routeOptions?.config?.operation?.errorFormat;
  if (routeFormat) return ERROR_FORMATS[routeFormat];
  if (usesAnthropicApi(request)) return ANTHROPIC;
  return isOpenRouterSdk(request.headers) ? OPENROUTER : DEFAULT_ERROR_FORMAT;
}

/** A header of all requests of Anthropic's clients. */
export const ANTHROPIC_VERSION_HEADER = 'anthropic-version';
const MESSAGES_PATH = /^\/(v1\/)?messages(\/|\?|$)/;

/**
 * Whether a request belongs to Anthropic's API: by its route, or by the header where several APIs have the same route.
 * Without an operation (unknown paths and methods), the header or the path decides.
 */
export function usesAnthropicApi({ url, headers, routeOptions }: FastifyRequest): boolean {
  const operation = routeOptions?.config?.operation;
  const hasHeader = headers[ANTHROPIC_VERSION_HEADER] !== undefined;
  if (!operation) return hasHeader || MESSAGES_PATH.test(url);
  return operation.errorFormat === 'anthropic' || (operation.sharedWithAnthropic === true && hasHeader);
}

/** Adds the fields that the API specifies in addition to the error object. */
function createErrorBody(status: number, error: ErrorObject) {
  return { status: 'error', statusCode: status, message: error.message, error };
}

function createErrorFormat(body: (error: ErrorResponse) => { readonly error: ErrorObject }): ErrorFormat {
  return { createBody: body, createEvent: (error) => body(error).error };
}
