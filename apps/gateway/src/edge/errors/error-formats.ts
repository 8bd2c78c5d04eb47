/** The one place that writes an error, in the shape that its reader looks for. */
import type { FastifyRequest } from 'fastify';
import { getMessageErrorType } from '#application/messages';
import { getPageHeaders, renderErrorPage } from '../pages/page.ts';

export interface ErrorResponse {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  /** OpenRouter's word for the kind of error. */
  readonly kind: string;
  /** OpenAI's word for what went wrong. */
  readonly code: string;
  readonly param?: string | null;
  readonly details?: Readonly<Record<string, string>>;
  readonly retryAfterSeconds?: number;
  /** The same request would get the same answer: a header says so to OpenAI's clients, which repeat a 409 by themselves. */
  readonly isFinal?: boolean;
}

interface ErrorObject {
  readonly message: string;
  readonly type: string;
  readonly code: string | number;
  readonly param?: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** How an error is written: alone as a body, and inside an event of a stream. */
interface ErrorFormat {
  /** What goes with it, where it is not JSON. */
  readonly headers?: Readonly<Record<string, string>>;
  createBody(error: ErrorResponse, requestId?: string): object | string;
  createEvent(error: ErrorResponse, requestId?: string): object;
}

const OPENAI = createErrorFormat(({ status, message, type, kind, code, param = null, details = {} }) => {
  return createErrorBody(status, { message, type, code, param, metadata: { error_type: kind, ...details } });
});

/** Its schemas demand an integer, and no field that is null. */
const OPENROUTER = createErrorFormat(({ status, message, type, kind, param, details = {} }) => {
  const metadata = { error_type: kind, ...details };
  return createErrorBody(status, { message, type, code: status, ...(param ? { param } : {}), metadata });
});

/** What stands behind `upstream_unavailable` is what Anthropic calls overloaded. */
export function toAnthropicErrorType({ status, type }: Pick<ErrorResponse, 'status' | 'type'>): string {
  if (type === 'upstream_unavailable') return 'overloaded_error';
  return getMessageErrorType(status);
}

/** The same in an event of a stream. Our own word is where its clients look for a narrower one. */
function toAnthropicError(error: ErrorResponse, request_id: string | null = null) {
  const { message, code, param, details: extraDetails } = error;
  const details = { error_code: code, ...(param ? { param } : {}), ...extraDetails };
  return { type: 'error', error: { type: toAnthropicErrorType(error), message, details }, request_id };
}

const ANTHROPIC: ErrorFormat = { createBody: toAnthropicError, createEvent: toAnthropicError };

/** For people. */
const PAGE: ErrorFormat = { headers: getPageHeaders(), createBody: renderErrorPage, createEvent: OPENAI.createEvent };

const ERROR_FORMATS = { openai: OPENAI, openrouter: OPENROUTER, anthropic: ANTHROPIC, page: PAGE } as const;

export type ErrorFormatName = keyof typeof ERROR_FORMATS;

/** OpenRouter's client for TypeScript names itself so: `speakeasy-sdk/typescript … @openrouter/sdk`. */
const OPENROUTER_SDK = /@openrouter\/sdk/;

/** For who is not known, because what came was no request. */
export const DEFAULT_ERROR_FORMAT: ErrorFormat = OPENAI;

/** The shape for the client of a request: that of the protocol of its route, where it has one of its own. */
export function selectErrorFormat({ headers, routeOptions }: FastifyRequest): ErrorFormat {
  const routeFormat = routeOptions?.config?.operation?.errorFormat;
  if (routeFormat) return ERROR_FORMATS[routeFormat];
  return OPENROUTER_SDK.test(headers['user-agent'] ?? '') ? OPENROUTER : DEFAULT_ERROR_FORMAT;
}

/** The specification's fields around the object that clients read. */
function createErrorBody(status: number, error: ErrorObject) {
  return { status: 'error', statusCode: status, message: error.message, error };
}

function createErrorFormat(body: (error: ErrorResponse) => { readonly error: ErrorObject }): ErrorFormat {
  return { createBody: body, createEvent: (error) => body(error).error };
}
