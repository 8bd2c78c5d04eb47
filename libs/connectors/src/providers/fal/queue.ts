/**
 * fal's queue: a request is handed over, asked for until it has ended, fetched, or called off.
 * https://docs.fal.ai/model-apis/model-endpoints/queue
 */
import { setTimeout as delay } from 'node:timers/promises';
import { toUpstreamError, UpstreamError } from '#application';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { toFalError } from './errors.ts';

const INITIAL_POLL_DELAY_MS = 250;
const MAX_POLL_DELAY_MS = 5_000;
const POLL_BACKOFF_FACTOR = 1.5;
/** Looks do not all come at once where many were handed over at once: by so much of a pause it is shorter at most. */
const JITTER = 0.25;
const CANCEL_TIMEOUT_MS = 10_000;

/** A request that was handed over. fal says where it is asked for; these are addresses of its queue. */
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
  private readonly headers: Readonly<Record<string, string>>;

  constructor(
    private readonly http: ProviderHttp,
    credential: string,
  ) {
    this.headers = { authorization: `Key ${credential}` };
  }

  /** @throws UpstreamError; one without a `status` leaves it open whether it was taken */
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
    throw new UpstreamError('upstream_error', 'The upstream does not say where its answer will be', {
      ...(requestId === undefined ? {} : { vendorId: requestId }),
    });
  }

  /** Changes nothing, and may be repeated. @throws UpstreamError */
  async fetchState({ statusUrl }: Pick<QueuedRequest, 'statusUrl'>, signal: AbortSignal): Promise<QueueState> {
    const body = (await this.get(statusUrl, signal)) as { readonly status?: unknown } | null;
    const state = STATES[String(body?.status)];
    if (state) return state;
    throw new UpstreamError('upstream_error', 'The upstream does not say how far its answer is');
  }

  /** What has come of a request that has ended. @throws UpstreamError also when nothing has: that is not billed */
  fetchResult({ responseUrl }: Pick<QueuedRequest, 'responseUrl'>, signal: AbortSignal): Promise<unknown> {
    return this.get(responseUrl, signal);
  }

  /** Only what still waits is certain not to be made, and billed. */
  async cancel({ cancelUrl }: Pick<QueuedRequest, 'cancelUrl'>): Promise<void> {
    const signal = AbortSignal.timeout(CANCEL_TIMEOUT_MS);
    await this.http.request(cancelUrl, { method: 'PUT', headers: this.headers, signal, mapErrorResponse: toFalError });
  }

  /**
   * Waits for what comes of a request. When that is cut short it is called off.
   * @throws UpstreamError whose `deliveredText` says that it may be billed although nothing came of it
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

  /** It may have begun since it was last looked at. What is not known any more was waiting. */
  private async cancelAndGetState(queued: QueuedRequest, last: QueueState): Promise<QueueState> {
    await this.cancel(queued).catch(() => {}); // shows in the look
    return this.fetchState(queued, AbortSignal.timeout(CANCEL_TIMEOUT_MS)).catch(() => last);
  }

  /** Being asked often costs it nothing, and a look that fails changes nothing: the deadline is the caller's. */
  private async waitUntilEnded(queued: QueuedRequest, state: { last: QueueState }, signal: AbortSignal): Promise<void> {
    for (let pause = INITIAL_POLL_DELAY_MS; ; pause = Math.min(pause * POLL_BACKOFF_FACTOR, MAX_POLL_DELAY_MS)) {
      state.last = await this.fetchState(queued, signal).catch((error) => {
        if (isTransient(toUpstreamError(error), signal, 500)) return state.last;
        throw error;
      });
      if (state.last === 'ended') return;
      await delay(pause * (1 - JITTER * Math.random()), undefined, { signal }).catch(() => {
        throw toUpstreamError(signal.reason);
      });
    }
  }

  /** The result is there, and was paid for: a connection that breaks is no reason to leave it. */
  private async fetchResultWithRetries(queued: QueuedRequest, signal: AbortSignal): Promise<unknown> {
    for (let pause = INITIAL_POLL_DELAY_MS; ; pause = Math.min(pause * POLL_BACKOFF_FACTOR, MAX_POLL_DELAY_MS)) {
      try {
        return await this.fetchResult(queued, signal);
      } catch (error) {
        if (!isTransient(toUpstreamError(error), signal, 502)) throw error; // 500 is what became of the request
      }
      await delay(pause, undefined, { signal }).catch(() => {
        throw toUpstreamError(signal.reason);
      });
    }
  }

  private async get(url: string, signal: AbortSignal): Promise<unknown> {
    const { headers, http } = this;
    return (await http.request(url, { method: 'GET', headers, signal, mapErrorResponse: toFalError })).json();
  }
}

/** Whether asking again may help. @param from the least status that says nothing of the request itself */
function isTransient({ code, status }: UpstreamError, { aborted }: AbortSignal, from: number): boolean {
  return !aborted && (code === 'rate_limited' || status === undefined || status >= from);
}

/** Facts keep where a job is looked at. */
function isJobUrl(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,1000}$/.test(value);
}
