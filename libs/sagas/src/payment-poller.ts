import { type BackendPayment, type PaymentBackend, type PaymentBackendRegistry, UpstreamError } from '#application';
import type { Runtime } from '#kernel';

/** Maximum number of batches that one poller sends concurrently. */
const MAX_CONCURRENT_BATCHES = 16;
/** How long all polls of an unavailable payment backend fail without a request. */
const BACKOFF_MS = 2_000;

interface QueuedPoll {
  readonly reference: string;
  readonly received: readonly string[];
  readonly result: PromiseWithResolvers<readonly BackendPayment[]>;
}

/**
 * Polls one payment backend in batches, with at most `perSecond` batches per second on average. Urgent references go
 * before regular ones. If a batch fails because of its content, each of its references is polled alone after all
 * queued ones, because one bad reference must not prevent the credits of the rest.
 */
export class PaymentPoller {
  private readonly urgentPolls: QueuedPoll[] = [];
  private readonly regularPolls: QueuedPoll[] = [];
  private readonly singlePolls: QueuedPoll[] = [];
  private running = 0;
  /** The error with which polls fail during a back-off, and after the lease has ended; otherwise undefined. */
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
   * Returns the current payments for a reference.
   * @param isUrgent whether this is no routine poll, for example after a hint of the payment backend
   * @param received ids of the payments recorded so far for this reference
   * @throws the error of the payment backend, at once during a back-off; the reason of the signal after it was aborted
   */
  async poll(
    reference: string,
    isUrgent: boolean,
    received: readonly string[] = [],
  ): Promise<readonly BackendPayment[]> {
    if (this.unavailableReason !== undefined) throw this.unavailableReason;
    const result = Promise.withResolvers<readonly BackendPayment[]>();
    (isUrgent ? this.urgentPolls : this.regularPolls).push({ reference, received, result });
    queueMicrotask(() => this.startBatches()); // polls of the same tick share batches
    return result.promise;
  }

  /** Makes a queued routine poll of this reference urgent. Otherwise a poll after a hint would wait for it first. */
  expedite(reference: string): void {
    const index = this.regularPolls.findIndex((poll) => poll.reference === reference);
    if (index >= 0) this.urgentPolls.push(...this.regularPolls.splice(index, 1));
  }

  /**
   * Sends batches while there are free slots. A batch occupies its slot long enough that all slots together respect
   * the rate limit on average.
   */
  private startBatches(): void {
    while (this.running < MAX_CONCURRENT_BATCHES) {
      const batch = this.urgentPolls.splice(0, this.backend.maxBatchSize);
      batch.push(...this.regularPolls.splice(0, this.backend.maxBatchSize - batch.length));
      if (batch.length === 0) batch.push(...this.singlePolls.splice(0, 1));
      if (batch.length === 0) return;
      this.running++;
      const pause = this.runtime.sleep((MAX_CONCURRENT_BATCHES * 1_000) / this.perSecond, { signal: this.signal });
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

  /** Rejects all queued polls, because waiting for this backend would only delay polls of other backends. */
  private backOff(error: UpstreamError): void {
    this.rejectAll(error);
    void this.runtime.sleep(BACKOFF_MS, { signal: this.signal }).then(() => {
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

/** Creates a poller for each configured payment backend, by its name. */
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

/**
 * Whether the payment backend itself has failed. If so, polling each reference alone would not help. Any other error
 * concerns the content of a response: one bad reference can cause it.
 */
function isBackendFailure(error: unknown): boolean {
  return error instanceof UpstreamError && (error.code !== 'upstream_error' || error.status !== undefined);
}
