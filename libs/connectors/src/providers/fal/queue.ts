/**
 * fal's queue: a request is submitted and polled until it has ended; then its result is fetched. A request that has not
 * ended can be cancelled. https://docs.fal.ai/model-apis/model-endpoints/queue
 */

import { setTimeout as delay } from 'node:timers/promises';
import { toUpstreamError, UpstreamError } from '#application';
import { retry } from '#kernel';
import { nodeRandomness } from '#runtime';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { toFalError } from './errors.ts';

const INITIAL_POLL_DELAY_MS = 250;
const MAX_POLL_DELAY_MS = 5_000;
const POLL_BACKOFF_FACTOR = 1.5;
/**
 * Pauses between polls are shortened by a random share up to this, so that requests submitted together are not polled
 * together.
 */
const JITTER = 0.25;
const CANCEL_TIMEOUT_MS = 10_000;

/** A submitted request, and the URLs that fal returned for it. */
export interface QueuedRequest {
  readonly requestId: string;
  readonly statusUrl: string;
  readonly responseUrl: string;
  readonly cancelUrl: string;
}

export type QueueState = 'waiting' | 'running' | 'ended';

const STATES: Readonly<Record<string, QueueState>> = {
  IN_QUEUE: 'waiting',
  IN_PROGRESS: 'running',
  COMPLETED: 'ended',
};

export class FalQueue {
  constructor(
    private readonly http: ProviderHttp,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  /**
   * @throws UpstreamError. Without `status` it is unknown whether fal accepted the request, unless `isUnsent` is set.
   */
  async submit(
    model: string,
    input: Readonly<Record<string, unknown>>,
    { signal, hookUrl }: { readonly signal: AbortSignal; readonly hookUrl?: string | undefined },
  ): Promise<QueuedRequest> {
    const webhookQuery = hookUrl === undefined ? '' : `?fal_webhook=${encodeURIComponent(hookUrl)}`;
    const response = await this.http.request(`/${model}${webhookQuery}`, {
      method: 'POST',
      headers: this.headers,
      body: { ...input },
      signal,
      isBilledAfterDisconnect: true,
      mapErrorResponse: toFalError,
    });
    const body = (await response.json()) as Readonly<Record<string, unknown>> | null;
    const requestId = parseProviderRequestId({ id: body?.request_id });
    const { status_url: statusUrl, response_url: responseUrl, cancel_url: cancelUrl } = body ?? {};
    if (requestId !== undefined && isJobUrl(statusUrl) && isJobUrl(responseUrl) && isJobUrl(cancelUrl))
      return { requestId, statusUrl, responseUrl, cancelUrl };
    throw new UpstreamError('upstream_error', 'The provider did not return a reference to the result', {
      ...(requestId === undefined ? {} : { vendorId: requestId }),
      hasOpenCost: true,
    });
  }

  /** Has no effect on the request and may be repeated. @throws UpstreamError if fal does not return a known state */
  async fetchState({ statusUrl }: Pick<QueuedRequest, 'statusUrl'>, signal: AbortSignal): Promise<QueueState> {
    const body = (await this.get(statusUrl, signal)) as { readonly status?: unknown } | null;
    const state = STATES[String(body?.status)];
    if (state) return state;
    throw new UpstreamError('upstream_error', 'The provider did not return the status of the request');
  }

  /** Returns the result of a request that has ended. @throws UpstreamError, also for a failed request */
  fetchResult({ responseUrl }: Pick<QueuedRequest, 'responseUrl'>, signal: AbortSignal): Promise<unknown> {
    return this.get(responseUrl, signal);
  }

  /** Cancels a request. Only one that is still waiting is certain not to be processed and billed. */
  async cancel({ cancelUrl }: Pick<QueuedRequest, 'cancelUrl'>): Promise<void> {
    const signal = AbortSignal.timeout(CANCEL_TIMEOUT_MS);
    await this.http.request(cancelUrl, { method: 'PUT', headers: this.headers, signal, mapErrorResponse: toFalError });
  }

  /**
   * Waits for the result of a request. Cancels the request if `signal` is aborted before the request has ended.
   * @throws UpstreamError with `deliveredText` if the request may be billed although there is no result
   */
  async waitForOutcome(queued: QueuedRequest, signal: AbortSignal): Promise<unknown> {
    const { requestId } = queued;
    const state = { last: 'waiting' as QueueState };
    try {
      await this.waitUntilEnded(queued, state, signal);
      return await this.fetchResultWithRetries(queued, signal);
    } catch (error) {
      const failure = toUpstreamError(error);
      if (signal.aborted && state.last !== 'ended') state.last = await this.cancelAndGetState(queued, state.last);
      const isOpen = failure.status === undefined && state.last !== 'waiting';
      throw failure.withDetails({ vendorId: requestId, ...(isOpen ? { deliveredText: '' } : {}) });
    }
  }

  /**
   * Cancels the request and polls it again, because it may have started since the last poll. Falls back to the last
   * known state.
   */
  private async cancelAndGetState(queued: QueuedRequest, last: QueueState): Promise<QueueState> {
    await this.cancel(queued).catch(() => {}); // the poll shows whether it worked
    // Without a response the request counts as it was last seen, so it may be billed.
    return this.fetchState(queued, AbortSignal.timeout(CANCEL_TIMEOUT_MS)).catch(() => last);
  }

  /** Polls are free and repeated after transient failures, so only `signal` limits the time. */
  private async waitUntilEnded(queued: QueuedRequest, state: { last: QueueState }, signal: AbortSignal): Promise<void> {
    for (let pause = INITIAL_POLL_DELAY_MS; ; pause = Math.min(pause * POLL_BACKOFF_FACTOR, MAX_POLL_DELAY_MS)) {
      state.last = await this.fetchState(queued, signal).catch((error) => {
        if (isTransient(toUpstreamError(error), signal, 500)) return state.last;
        throw error;
      });
      if (state.last === 'ended') return;
      await waitOrThrow(pause * (1 - JITTER * Math.random()), signal);
    }
  }

  /** The request has ended and may be billed, so the fetch is retried after transient failures. */
  private async fetchResultWithRetries(queued: QueuedRequest, signal: AbortSignal): Promise<unknown> {
    return retry(() => this.fetchResult(queued, signal), {
      minMs: INITIAL_POLL_DELAY_MS,
      maxMs: MAX_POLL_DELAY_MS,
      factor: POLL_BACKOFF_FACTOR,
      chance: nodeRandomness.chance,
      sleep: (milliseconds) => waitOrThrow(milliseconds, signal),
      shouldRetry: (error) => isTransient(toUpstreamError(error), signal, 502), // 500 means that the request failed
    });
  }

  private async get(url: string, signal: AbortSignal): Promise<unknown> {
    const { headers, http } = this;
    return (await http.request(url, { method: 'GET', headers, signal, mapErrorResponse: toFalError })).json();
  }
}

/** @throws UpstreamError with the reason of `signal` if that aborts before the end of the wait */
async function waitOrThrow(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => {
    throw toUpstreamError(signal.reason);
  });
}

/** Whether a retry can help. @param from the lowest status of errors that may be transient, apart from 429 */
function isTransient({ code, status }: UpstreamError, { aborted }: AbortSignal, from: number): boolean {
  return !aborted && (code === 'rate_limited' || status === undefined || status >= from);
}

/** Limits the length, because events store the URLs of a job. */
function isJobUrl(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,1000}$/.test(value);
}
