/** What all protocols have in common: one address, bodies in JSON, answers in one piece or as a stream. */
import { type Dispatcher, errors } from 'undici';
import { type ChatProtocol, type CompletionStream, UpstreamError } from '#application';
import { wordsIn } from '../providers/chat/partial-text.ts';
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
  readonly allowed: FieldFilter;
  /** Longest silence of a stream that has begun. */
  readonly idleTimeoutMs?: number;
  /** What an answer with another status than 200 means. */
  refusalOf?(status: number, headers: Headers, body: string): UpstreamError;
}

/** Where an upstream takes its requests. */
export class JsonHttpClient {
  private readonly origin: string;
  private readonly path: string;
  private readonly headers: Record<string, string>;
  private readonly allowed: FieldFilter;
  private readonly idleTimeoutMs: number | undefined;
  private readonly refusalOf: (status: number, headers: Headers, body: string) => UpstreamError;

  constructor(
    url: string,
    private readonly dispatcher: Dispatcher,
    { headers, allowed, idleTimeoutMs, refusalOf = toUpstreamErrorFromResponse }: HttpEndpointOptions,
  ) {
    const { origin, pathname, search } = new URL(url);
    this.origin = origin;
    this.path = pathname + search;
    this.headers = { 'content-type': 'application/json', accept: ACCEPT, 'user-agent': USER_AGENT, ...headers };
    this.allowed = allowed;
    this.idleTimeoutMs = idleTimeoutMs;
    this.refusalOf = refusalOf;
  }

  private sent(body: unknown): string {
    return JSON.stringify(this.allowed(body, ''));
  }

  /** Such an answer is silent until it is complete: only the total time bounds it. @throws UpstreamError */
  async whole(body: unknown, signal: AbortSignal): Promise<string> {
    const { origin, path, headers, dispatcher } = this;
    const sent = this.sent(body);
    const reader = new BufferedBodyReader(signal);
    dispatcher.dispatch({ origin, path, method: 'POST', headers, body: sent, headersTimeout: 0 }, reader);
    let answer: BufferedBody;
    try {
      answer = await reader.body;
    } catch (error) {
      throw failureFrom(error, signal);
    }
    if (answer.status !== 200) throw this.refusalOf(answer.status, answer.headers, answer.text);
    if (answer.broken === undefined) return answer.text;
    // An answer that breaks off has been generated, and may be invoiced, as far as it came.
    throw brokenOff(failureFrom(answer.broken, signal), { deliveredText: wordsIn(answer.text) });
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
    language: ChatProtocol = 'chat',
  ): Promise<CompletionStream> {
    const { origin, path, headers, dispatcher, idleTimeoutMs, refusalOf } = this;
    const sent = this.sent(body);
    // What was generated is invoiced, also where nothing of it was to be passed on: it is not asked for again.
    const delivered = () => (translator.generating ? translator.deliveredText() : undefined);
    const failureOf = (error: unknown, started: boolean) =>
      started
        ? brokenOff(failureFrom(error, signal), { deliveredText: delivered(), vendorId: translator.vendorId() })
        : failureFrom(error, signal);
    const relay = new StreamRelay({ translator, signal, idleTimeoutMs, refusalOf, failureOf });
    const unbounded = { headersTimeout: 0, bodyTimeout: 0 };
    dispatcher.dispatch({ origin, path, method: 'POST', headers, body: sent, ...unbounded }, relay);
    await relay.started;
    return {
      kind: 'stream',
      protocol: language,
      pipeTo: (receiver) => relay.to(receiver),
      usage: () => translator.usage(),
      vendorId: () => translator.vendorId(),
      getDeliveredText: () => translator.deliveredText(),
      getMaxGeneratedTokens: () => translator.generatedAtMost(),
      hasForwarded: () => translator.hasTold(),
      getIdleMs: (excusedMs) => relay.silentMs(excusedMs),
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
  const { isOurs, ...complaint } = complaintIn(text);
  const failure = toUpstreamErrorFromStatus(status, headers, complaint);
  if (!isOurs || failure.code !== 'invalid_request') return failure;
  return new UpstreamError('upstream_unavailable', MESSAGE_UNAVAILABLE, { status });
}

/** The same of a vendor that writes its errors otherwise. */
export function toUpstreamErrorFromStatus(status: number, headers: Headers, complaint: Complaint = {}): UpstreamError {
  const more = { status, ...parseRetryAfter(headers) };
  if (status === 429) return new UpstreamError('rate_limited', MESSAGE_RATE_LIMITED, more);
  if (status === 408 || status === 504) return new UpstreamError('timeout', MESSAGE_TIMEOUT, more);
  if (status === 400 || status === 413 || status === 422)
    return new UpstreamError('invalid_request', MESSAGE_REJECTED, { ...more, ...complaint });
  if (status === 503) return new UpstreamError('upstream_unavailable', MESSAGE_UNAVAILABLE, more);
  return new UpstreamError('upstream_error', `The upstream answered with status ${status}`, more);
}

/** A code of OpenAI's for what is wrong with a request. Those about an account are about ours, and not told. */
const WORD = /^(?!.*(account|billing|key|quota))[a-z_]{1,64}$/;
/** Ours is empty, closed or unknown, whatever the status: https://platform.openai.com/docs/guides/error-codes */
const OURS = /^(account_|billing_|insufficient_quota|invalid_api_key)/;
/** The way to a field, as vendors write it. */
const PARAM = /^[\w.[\]-]{1,128}$/;

type Complaint = Pick<Partial<UpstreamError>, 'upstreamMessage' | 'param' | 'upstreamCode'>;

/** What an error says, as far as it does: the message, and OpenAI's `param` and `code`. */
function complaintIn(text: string): Complaint & { readonly isOurs?: true } {
  try {
    const { message, param, code } = JSON.parse(text).error;
    return {
      ...(typeof message === 'string' ? { upstreamMessage: message } : {}),
      ...(typeof param === 'string' && PARAM.test(param) ? { param } : {}),
      ...(typeof code === 'string' && WORD.test(code) ? { upstreamCode: code } : {}),
      ...(typeof code === 'string' && OURS.test(code) ? { isOurs: true } : {}),
    };
  } catch {
    return {};
  }
}

/** A connection that is lost within an answer is no sign that the upstream cannot be reached. */
function brokenOff(
  { code, message, cause }: UpstreamError,
  known: Partial<Pick<UpstreamError, 'deliveredText' | 'vendorId'>>,
): UpstreamError {
  if (code !== 'upstream_unavailable') return new UpstreamError(code, message, { cause, ...known });
  return new UpstreamError('upstream_error', 'The upstream broke off the answer', { cause, ...known });
}

function failureFrom(error: unknown, signal: AbortSignal): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (signal.aborted && signal.reason instanceof UpstreamError) return signal.reason;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
    return new UpstreamError('timeout', MESSAGE_TIMEOUT, { cause: error });
  }
  return new UpstreamError('upstream_unavailable', 'The upstream cannot be reached', { cause: error });
}
