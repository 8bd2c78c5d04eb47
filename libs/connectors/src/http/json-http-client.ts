/** What all protocols have in common: one address, bodies in JSON, answers in one piece or as a stream. */
import { type Dispatcher, errors } from 'undici';
import { type ChatProtocol, type CompletionStream, UpstreamError } from '#application';
import { extractGeneratedText } from '../providers/chat/partial-text.ts';
import { type BufferedBody, BufferedBodyReader } from './buffered-body.ts';
import type { FieldFilter } from './field-filter.ts';
import { parseRetryAfter } from './retry-after.ts';
import { type EventTranslator, type Headers, StreamRelay } from './stream-relay.ts';
import { USER_AGENT } from './user-agent.ts';

/** Whole answers and streams are had at one address. */
const ACCEPT = 'application/json, text/event-stream';

export interface HttpEndpointOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** What of a request may be sent there. */
  readonly fieldFilter: FieldFilter;
  /** Longest silence of a stream that has begun. */
  readonly idleTimeoutMs?: number;
  /** What an answer with another status than 200 means. */
  mapErrorResponse?(status: number, headers: Headers, body: string): UpstreamError;
}

/** Where an upstream takes its requests. */
export class JsonHttpClient {
  private readonly origin: string;
  private readonly path: string;
  private readonly headers: Record<string, string>;
  private readonly fieldFilter: FieldFilter;
  private readonly idleTimeoutMs: number | undefined;
  private readonly mapErrorResponse: (status: number, headers: Headers, body: string) => UpstreamError;

  constructor(
    url: string,
    private readonly dispatcher: Dispatcher,
    { headers, fieldFilter, idleTimeoutMs, mapErrorResponse = toUpstreamErrorFromResponse }: HttpEndpointOptions,
  ) {
    const { origin, pathname, search } = new URL(url);
    this.origin = origin;
    this.path = pathname + search;
    this.headers = { 'content-type': 'application/json', accept: ACCEPT, 'user-agent': USER_AGENT, ...headers };
    this.fieldFilter = fieldFilter;
    this.idleTimeoutMs = idleTimeoutMs;
    this.mapErrorResponse = mapErrorResponse;
  }

  private serialize(body: unknown): string {
    return JSON.stringify(this.fieldFilter(body, ''));
  }

  /** Such an answer is silent until it is complete: only the total time bounds it. @throws UpstreamError */
  async post(body: unknown, signal: AbortSignal): Promise<string> {
    const { origin, path, headers, dispatcher } = this;
    const sent = this.serialize(body);
    const reader = new BufferedBodyReader(signal);
    dispatcher.dispatch({ origin, path, method: 'POST', headers, body: sent, headersTimeout: 0 }, reader);
    let response: BufferedBody;
    try {
      response = await reader.body;
    } catch (error) {
      throw toConnectionError(error, signal);
    }
    if (response.status !== 200) throw this.mapErrorResponse(response.status, response.headers, response.text);
    if (response.error === undefined) return response.text;
    // An answer that breaks off has been generated, and may be invoiced, as far as it came.
    throw toInterruptedError(toConnectionError(response.error, signal), {
      deliveredText: extractGeneratedText(response.text),
    });
  }

  /**
   * Waits for the first event, so that an upstream that fails before it can still be answered with an error. A model may
   * think before it for as long as an answer may take.
   * @throws UpstreamError
   */
  async stream(
    body: unknown,
    signal: AbortSignal,
    translator: EventTranslator,
    protocol: ChatProtocol = 'chat',
  ): Promise<CompletionStream> {
    const { origin, path, headers, dispatcher, idleTimeoutMs, mapErrorResponse } = this;
    const sent = this.serialize(body);
    // What was generated is invoiced, also where nothing of it was to be passed on: it is not asked for again.
    const getDeliveredText = () => (translator.isGenerating ? translator.getDeliveredText() : undefined);
    const mapConnectionError = (error: unknown, started: boolean) =>
      started
        ? toInterruptedError(toConnectionError(error, signal), {
            deliveredText: getDeliveredText(),
            vendorId: translator.vendorId(),
          })
        : toConnectionError(error, signal);
    const relay = new StreamRelay({ translator, signal, idleTimeoutMs, mapErrorResponse, mapConnectionError });
    const unbounded = { headersTimeout: 0, bodyTimeout: 0 };
    dispatcher.dispatch({ origin, path, method: 'POST', headers, body: sent, ...unbounded }, relay);
    await relay.started;
    return {
      kind: 'stream',
      protocol,
      pipeTo: (receiver) => relay.pipeTo(receiver),
      usage: () => translator.usage(),
      vendorId: () => translator.vendorId(),
      getDeliveredText: () => translator.getDeliveredText(),
      getMaxGeneratedTokens: () => translator.getMaxGeneratedTokens(),
      hasForwarded: () => translator.hasForwarded(),
      getIdleMs: (graceMs) => relay.getIdleMs(graceMs),
    };
  }
}

/** What is said of a failure, whatever the upstream says. */
export const MESSAGE_REJECTED = 'The upstream refused the request';
export const MESSAGE_CONTENT_POLICY = 'The request is against the rules of the vendor';
export const MESSAGE_RATE_LIMITED = 'The upstream is limiting requests; try again later';
export const MESSAGE_UNAVAILABLE = 'The upstream does not serve at present';
export const MESSAGE_TIMEOUT = 'The upstream took too long';

/** What an error answer means for the caller. The upstream's own words are passed on only where they are about the request. */
export function toUpstreamErrorFromResponse(status: number, headers: Headers, text: string): UpstreamError {
  const { isAccountError, ...errorDetails } = parseErrorDetails(text);
  const failure = toUpstreamErrorFromStatus(status, headers, errorDetails);
  if (!isAccountError || failure.code !== 'invalid_request') return failure;
  return new UpstreamError('upstream_unavailable', MESSAGE_UNAVAILABLE, { status });
}

/** The same of a vendor that writes its errors otherwise. */
export function toUpstreamErrorFromStatus(
  status: number,
  headers: Headers,
  errorDetails: ErrorDetails = {},
): UpstreamError {
  const statusDetails = { status, ...parseRetryAfter(headers) };
  if (status === 429) return new UpstreamError('rate_limited', MESSAGE_RATE_LIMITED, statusDetails);
  if (status === 408 || status === 504) return new UpstreamError('timeout', MESSAGE_TIMEOUT, statusDetails);
  if (status === 400 || status === 413 || status === 422)
    return new UpstreamError('invalid_request', MESSAGE_REJECTED, { ...statusDetails, ...errorDetails });
  if (status === 503) return new UpstreamError('upstream_unavailable', MESSAGE_UNAVAILABLE, statusDetails);
  return new UpstreamError('upstream_error', `The upstream answered with status ${status}`, statusDetails);
}

/** A code of OpenAI's for what is wrong with a request. Those about an account are about ours, and not told. */
const PUBLIC_ERROR_CODE = /^(?!.*(account|billing|key|quota))[a-z_]{1,64}$/;
/** Ours is empty, closed or unknown, whatever the status: https://platform.openai.com/docs/guides/error-codes */
const ACCOUNT_ERROR_CODE = /^(account_|billing_|insufficient_quota|invalid_api_key)/;
/** The way to a field, as vendors write it. */
const PARAM = /^[\w.[\]-]{1,128}$/;

type ErrorDetails = Pick<Partial<UpstreamError>, 'upstreamMessage' | 'param' | 'upstreamCode'>;

/** What an error says, as far as it does: the message, and OpenAI's `param` and `code`. */
function parseErrorDetails(text: string): ErrorDetails & { readonly isAccountError?: true } {
  try {
    const { message, param, code } = JSON.parse(text).error;
    return {
      ...(typeof message === 'string' ? { upstreamMessage: message } : {}),
      ...(typeof param === 'string' && PARAM.test(param) ? { param } : {}),
      ...(typeof code === 'string' && PUBLIC_ERROR_CODE.test(code) ? { upstreamCode: code } : {}),
      ...(typeof code === 'string' && ACCOUNT_ERROR_CODE.test(code) ? { isAccountError: true } : {}),
    };
  } catch {
    return {};
  }
}

/** A connection that is lost within an answer is no sign that the upstream cannot be reached. */
function toInterruptedError(
  { code, message, cause }: UpstreamError,
  details: Partial<Pick<UpstreamError, 'deliveredText' | 'vendorId'>>,
): UpstreamError {
  if (code !== 'upstream_unavailable') return new UpstreamError(code, message, { cause, ...details });
  return new UpstreamError('upstream_error', 'The upstream broke off the answer', { cause, ...details });
}

function toConnectionError(error: unknown, signal: AbortSignal): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (signal.aborted && signal.reason instanceof UpstreamError) return signal.reason;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
    return new UpstreamError('timeout', MESSAGE_TIMEOUT, { cause: error });
  }
  return new UpstreamError('upstream_unavailable', 'The upstream cannot be reached', { cause: error });
}
