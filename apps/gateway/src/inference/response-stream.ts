import type { ResponseError, ResponseEventOutput } from '#application';
import { INTERNAL_ERROR, toErrorResponse } from '../edge/errors/errors.ts';
import { SseWriter } from '../edge/responses/sse-writer.ts';

/** OpenAI's codes of a failed response, by the `code` or `kind` of the gateway's error. */
const ERROR_CODES: ReadonlyMap<string, string> = new Map([
  ['context_length_exceeded', 'context_length_exceeded'],
  ['rate_limit_exceeded', 'rate_limit_exceeded'],
  ['invalid_request', 'invalid_prompt'],
]);

/** Writes a streamed response of OpenAI's Responses API. */
export class ResponseStreamWriter extends SseWriter implements ResponseEventOutput {
  toResponseError(error: unknown): ResponseError {
    const { message, kind, code } = toErrorResponse(error) ?? INTERNAL_ERROR;
    return { code: ERROR_CODES.get(code) ?? ERROR_CODES.get(kind) ?? 'server_error', message };
  }
}
