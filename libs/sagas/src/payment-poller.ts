import { type BackendPayment, type PaymentBackend, type PaymentBackendRegistry, UpstreamError } from '#application';
import type { Runtime } from '#kernel';

/** Requests to one back end that run at the same time. */
const MAX_CONCURRENT_BATCHES = 16;
/** How long a back end that could not be reached is left alone. */
const BACKOFF_MS = 2_000;

interface QueuedPoll {
  readonly reference: string;
  readonly received: readonly string[];
  readonly result: PromiseWithResolvers<readonly BackendPayment[]>;
}

/**
 * Looks at one back end, at most so many requests a second, each for as many references as it takes at once. References
 * for which something has happened go before those that are only looked at again. Of those that could not be looked at
 * together each is looked at alone, after all others: one that is wrong must not keep the rest from being credited.
 */
export class PaymentPoller {
  private readonly urgentPolls: QueuedPoll[] = [];
  private readonly regularPolls: QueuedPoll[] = [];
  private readonly singlePolls: QueuedPoll[] = [];
  private running = 0;
  /** Why it is left alone; undefined while it answers. */
  private unavailableReason: unknown;

  constructor(
    private readonly backend: PaymentBackend,
    private readonly perSecond: number,
    private readonly runtime: Pick<Runtime, 'sleep'>,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => this.rejectAll(signal.reason));
  }

  /**
   * @param received ids of its payments that were received before
   * @throws UpstreamError; what the signal is aborted with
   */
  async poll(
    reference: string,
    isUrgent: boolean,
    received: readonly string[] = [],
  ): Promise<readonly BackendPayment[]> {
    if (this.unavailableReason !== undefined) throw this.unavailableReason;
    const result = Promise.withResolvers<readonly BackendPayment[]>();
    (isUrgent ? this.urgentPolls : this.regularPolls).push({ reference, received, result });
    queueMicrotask(() => this.startBatches()); // those that are asked together go together
    return result.promise;
  }

  /** A request keeps its place for as long as keeps all of them below the limit. */
  private startBatches(): void {
    while (this.running < MAX_CONCURRENT_BATCHES) {
      const batch = this.urgentPolls.splice(0, this.backend.maxBatchSize);
      batch.push(...this.regularPolls.splice(0, this.backend.maxBatchSize - batch.length));
      if (batch.length === 0) batch.push(...this.singlePolls.splice(0, 1));
      if (batch.length === 0) return;
      this.running++;
      const pause = this.runtime.sleep((MAX_CONCURRENT_BATCHES * 1_000) / this.perSecond, this.signal);
      void Promise.all([this.pollBatch(batch), pause]).then(() => {
        this.running--;
        this.startBatches();
      });
    }
  }

  private async pollBatch(batch: readonly QueuedPoll[]): Promise<void> {
    try {
      const references = new Set(batch.map(({ reference }) => reference));
      const received = new Set(batch.flatMap((poll) => poll.received));
      const fetched = await this.backend.fetchPayments([...references], [...received]);
      const payments = Map.groupBy(fetched, ({ reference }) => reference);
      for (const { reference, result } of batch) result.resolve(payments.get(reference) ?? []);
    } catch (error) {
      const isUnavailable = error instanceof UpstreamError && error.code === 'upstream_unavailable';
      if (batch.length > 1 && !isBackendFailure(error) && this.unavailableReason === undefined)
        return void this.singlePolls.push(...batch);
      for (const { result } of batch) result.reject(error);
      if (isUnavailable) this.backOff(error);
    }
  }

  /** What waits fails at once: it would only keep looks at other back ends waiting. */
  private backOff(error: UpstreamError): void {
    this.rejectAll(error);
    void this.runtime.sleep(BACKOFF_MS, this.signal).then(() => {
      if (!this.signal.aborted) this.unavailableReason = undefined;
    });
  }

  private rejectAll(error: unknown): void {
    this.unavailableReason = error;
    for (const { result } of [
      ...this.urgentPolls.splice(0),
      ...this.regularPolls.splice(0),
      ...this.singlePolls.splice(0),
    ])
      result.reject(error);
  }
}

/** Looks at each back end, by its name. */
export function createPaymentPollers(
  backends: PaymentBackendRegistry,
  perSecond: number,
  runtime: Pick<Runtime, 'sleep'>,
  signal: AbortSignal,
): ReadonlyMap<string, PaymentPoller> {
  return new Map(
    backends.backends.map((backend) => [backend.name, new PaymentPoller(backend, perSecond, runtime, signal)]),
  );
}

/** Whether the back end itself fails: then to ask it as much again would not help it. Else what it said is wrong. */
function isBackendFailure(error: unknown): boolean {
  return error instanceof UpstreamError && (error.code !== 'upstream_error' || error.status !== undefined);
}
