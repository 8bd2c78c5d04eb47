/** What all chat protocols have in common: one URL, JSON bodies, and non-streaming or streamed responses. */
import { Readable } from 'node:stream';
import { type Dispatcher, errors } from 'undici';
import {
  type ChatProtocol,
  type Completion,
  type CompletionStream,
  createCredentialError,
  type FailureDetails,
  MESSAGE_PROVIDER_UNAVAILABLE,
  serializeJson,
  UpstreamError,
} from '#application';
import { toCompletionStream } from '../providers/chat/completion-stream.ts';
import { extractGeneratedText } from '../providers/chat/partial-text.ts';
import { type BufferedBody, BufferedBodyReader } from './buffered-body.ts';
import {
  type ClassifyError,
  classifyCommonError,
  MESSAGE_RATE_LIMITED,
  MESSAGE_REJECTED,
  parseErrorReport,
  toPublicCode,
  toUsageDetails,
} from './error-rules.ts';
import type { FieldFilter } from './field-filter.ts';
import { parseRetryAfter } from './retry-after.ts';
import { type EventTranslator, type Headers, StreamRelay } from './stream-relay.ts';
import { USER_AGENT } from './user-agent.ts';

/** The same URL returns non-streaming and streamed responses. */
const ACCEPT = 'application/json, text/event-stream';

export interface HttpEndpointOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Selects the fields of a request body that are sent. */
  readonly fieldFilter: FieldFilter;
  /** Maximum idle time of a stream after its first output, and of an error response to a streaming request. */
  readonly idleTimeoutMs?: number;
  /** Converts a response whose status is not 200. */
  mapErrorResponse?(status: number, headers: Headers, body: string): UpstreamError;
  /** Classifies errors within a response with status 200. */
  readonly classifyError?: ClassifyError;
  /** Called before each request. @throws UpstreamError if it must not be sent */
  beforeRequest?(): void;
  /** Called when a response with status 200 has started. */
  onAccepted?(): void;
}

/** How the response to a streaming request is read. */
export interface StreamFormat {
  readonly translator: EventTranslator;
  /** `chat` by default. */
  readonly protocol?: ChatProtocol;
  /** Parses a non-streaming response. @throws UpstreamError if it is invalid or reports an error */
  parseCompletion(text: string): Completion;
}

/** Sends JSON requests to one URL of a provider. */
export class JsonHttpClient {
  private readonly origin: string;
  private readonly path: string;
  private readonly headers: Record<string, string>;
  private readonly fieldFilter: FieldFilter;
  private readonly idleTimeoutMs: number | undefined;
  private readonly mapErrorResponse: (status: number, headers: Headers, body: string) => UpstreamError;
  readonly classifyError: ClassifyError;
  private readonly beforeRequest: (() => void) | undefined;
  private readonly onAccepted: (() => void) | undefined;

  constructor(
    url: string,
    private readonly dispatcher: Dispatcher,
    {
      headers,
      fieldFilter,
      idleTimeoutMs,
      mapErrorResponse = toUpstreamErrorFromResponse,
      classifyError = classifyCommonError,
      beforeRequest,
      onAccepted,
    }: HttpEndpointOptions,
  ) {
    const { origin, pathname, search } = new URL(url);
    this.origin = origin;
    this.path = pathname + search;
    this.headers = { 'content-type': 'application/json', accept: ACCEPT, 'user-agent': USER_AGENT, ...headers };
    this.fieldFilter = fieldFilter;
    this.idleTimeoutMs = idleTimeoutMs;
    this.mapErrorResponse = mapErrorResponse;
    this.classifyError = classifyError;
    this.beforeRequest = beforeRequest;
    this.onAccepted = onAccepted;
  }

  /** Returns a promise only for a large body, which is sent in parts: joining them would hold the event loop. */
  private createRequest(body: unknown): Dispatcher.DispatchOptions | Promise<Dispatcher.DispatchOptions> {
    const { origin, path, headers } = this;
    const request = { origin, path, method: 'POST', headersTimeout: 0 } as const;
    const serialized = serializeJson(this.fieldFilter(body, ''));
    if (typeof serialized === 'string') return { ...request, headers, body: serialized };
    return serialized.then((parts) => {
      const contentLength = parts.reduce((sum, { length }) => sum + length, 0);
      return { ...request, headers: { ...headers, 'content-length': `${contentLength}` }, body: Readable.from(parts) };
    });
  }

  /**
   * Returns the body of a non-streaming response. The provider may send nothing until the response is complete, so only
   * `signal` limits the time to its start.
   * @throws UpstreamError, also if the field filter rejects the body
   */
  async post(body: unknown, signal: AbortSignal): Promise<string> {
    this.beforeRequest?.();
    const created = this.createRequest(body);
    const request = created instanceof Promise ? await created : created;
    const reader = new BufferedBodyReader(signal);
    this.dispatcher.dispatch(request, reader);
    let response: BufferedBody;
    try {
      response = await reader.body;
    } catch (error) {
      throw toConnectionError(error, signal, reader.sentAtMs);
    }
    if (response.status !== 200) throw this.mapErrorResponse(response.status, response.headers, response.text);
    this.onAccepted?.();
    if (response.error === undefined) return response.text;
    // The received part of an interrupted response has been generated, and may be invoiced.
    throw toInterruptedError(toConnectionError(response.error, signal, reader.sentAtMs), {
      deliveredText: extractGeneratedText(response.text),
    });
  }

  /**
   * Resolves when the first event can be forwarded, or at the end of the response. A response that is one JSON object
   * although a stream was requested is parsed like a non-streaming one, and becomes a stream of its content. If the
   * provider fails before that, the client can still get an error status. A model may reason before the first event, so
   * only `signal` limits that time.
   * @throws UpstreamError if the request fails or is aborted before the first event, or the field filter rejects it
   */
  async stream(
    body: unknown,
    signal: AbortSignal,
    { translator, protocol = 'chat', parseCompletion }: StreamFormat,
  ): Promise<CompletionStream> {
    this.beforeRequest?.();
    const { dispatcher, idleTimeoutMs, mapErrorResponse } = this;
    const created = this.createRequest(body);
    const request = created instanceof Promise ? await created : created;
    // Generated output is invoiced even if none of it is forwarded. With `deliveredText` the request is not repeated.
    const getDeliveredText = () => {
      if (relay.jsonText !== undefined) return extractGeneratedText(relay.jsonText);
      return translator.isGenerating ? translator.getDeliveredText() : undefined;
    };
    const mapConnectionError = (error: unknown, started: boolean) => {
      const failure = toConnectionError(error, signal, relay.sentAtMs);
      if (!started) return failure;
      return toInterruptedError(failure, {
        deliveredText: getDeliveredText(),
        vendorId: translator.vendorId(),
        ...toUsageDetails(failure, translator.usage()),
      });
    };
    const relay: StreamRelay = new StreamRelay({
      translator,
      signal,
      idleTimeoutMs,
      mapErrorResponse,
      mapConnectionError,
    });
    dispatcher.dispatch({ ...request, bodyTimeout: 0 }, relay);
    await relay.started;
    this.onAccepted?.();
    if (relay.jsonText !== undefined) return toCompletionStream(parseCompletion(relay.jsonText));
    return {
      kind: 'stream',
      protocol,
      pipeTo: (receiver) => relay.pipeTo(receiver),
      usage: () => translator.usage(),
      getInputUsage: () => translator.getInputUsage?.(),
      vendorId: () => translator.vendorId(),
      reportedBill: () => translator.reportedBill(),
      getDeliveredText: () => translator.getDeliveredText(),
      getMaxGeneratedTokens: () => translator.getMaxGeneratedTokens(),
      hasForwarded: () => translator.hasForwarded(),
      getIdleMs: (graceMs) => relay.getIdleMs(graceMs),
      getPausedMs: () => relay.pausedMs,
    };
  }
}

export const MESSAGE_TIMEOUT = 'The provider took too long to respond';

/** Converts an error response in any format that `parseErrorReport` reads. */
export function toUpstreamErrorFromResponse(status: number, headers: Headers, text: string): UpstreamError {
  const { message, param, code } = parseErrorReport(text);
  return toUpstreamErrorFromStatus(status, headers, {
    upstreamMessage: message,
    param,
    upstreamCode: toPublicCode(code),
  });
}

/** Creates the failure of a request whose API key the provider rejected. @param status of the response */
export function createKeyError(status: number): UpstreamError {
  return createCredentialError(MESSAGE_PROVIDER_UNAVAILABLE, status);
}

/**
 * Converts the status of an error response whose meaning no rule states. The provider's own message is included only
 * for `invalid_request`.
 * @param errorDetails parsed from the body by the caller
 */
export function toUpstreamErrorFromStatus(
  status: number,
  headers: Headers,
  errorDetails: ErrorDetails = {},
): UpstreamError {
  const statusDetails = { status, ...parseRetryAfter(headers) };
  if (status === 401) return createKeyError(status);
  if (status === 429) return new UpstreamError('rate_limited', MESSAGE_RATE_LIMITED, statusDetails);
  if (status === 408 || status === 504) return new UpstreamError('timeout', MESSAGE_TIMEOUT, statusDetails);
  if (status === 400 || status === 413 || status === 422)
    return new UpstreamError('invalid_request', MESSAGE_REJECTED, { ...statusDetails, ...errorDetails });
  if (status === 503) return new UpstreamError('upstream_unavailable', MESSAGE_PROVIDER_UNAVAILABLE, statusDetails);
  return new UpstreamError('upstream_error', `The provider responded with status ${status}`, statusDetails);
}

type ErrorDetails = Pick<FailureDetails, 'upstreamMessage' | 'param' | 'upstreamCode'>;

/**
 * Adds what had arrived. A connection that is lost during a response does not show that the provider is unreachable, so
 * the code `upstream_unavailable` becomes `upstream_error`.
 */
function toInterruptedError(
  failure: UpstreamError,
  received: Pick<FailureDetails, 'deliveredText' | 'vendorId' | 'usage' | 'unpaidUsage'>,
): UpstreamError {
  const { code, cause, idleMs, hasOpenCost, operatorProblem } = failure;
  const details = {
    cause,
    hasOpenCost,
    ...received,
    deliveredText: received.deliveredText ?? failure.deliveredText,
    ...(received.deliveredText ? { idleMs: undefined } : { idleMs }),
  };
  if (code !== 'upstream_unavailable' || operatorProblem) return failure.withDetails(details);
  return new UpstreamError('upstream_error', 'The provider ended the response early', details);
}

/**
 * Converts the error of a request without a complete response. If the request was sent before its client disconnected,
 * the provider may have reasoned, and the client owes that: `deliveredText` is set. After any other failure of a
 * request that was sent, nobody owes anything, but the provider may invoice it.
 */
function toConnectionError(error: unknown, signal: AbortSignal, sentAtMs: number | undefined): UpstreamError {
  if (error instanceof UpstreamError && error !== signal.reason) return error;
  if (signal.aborted && signal.reason instanceof UpstreamError)
    return sentAtMs === undefined ? signal.reason : toAbortedError(signal.reason, performance.now() - sentAtMs);
  const details = { cause: error, hasOpenCost: sentAtMs !== undefined };
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
    return new UpstreamError('timeout', MESSAGE_TIMEOUT, details);
  }
  return new UpstreamError('upstream_unavailable', 'The provider cannot be reached', details);
}

function toAbortedError(reason: UpstreamError, idleMs: number): UpstreamError {
  return reason.withDetails(
    reason.code === 'client_disconnected' ? { deliveredText: '', idleMs } : { hasOpenCost: true },
  );
}
