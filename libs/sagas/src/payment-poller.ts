import { type BackendPayment, type PaymentBackend, type PaymentBackendRegistry, UpstreamError } from '#application';
import type { Runtime } from '#kernel';

/** Requests to one back end that run at the same time. */
const AT_ONCE = 16;
/** How long a back end that could not be reached is left alone. */
const LEFT_ALONE_MS = 2_000;

interface Wanted {
  readonly reference: string;
  readonly received: readonly string[];
  readonly answer: PromiseWithResolvers<readonly BackendPayment[]>;
}

/**
 * Looks at one back end, at most so many requests a second, each for as many references as it takes at once. References
 * for which something has happened go before those that are only looked at again. Of those that could not be looked at
 * together each is looked at alone, after all others: one that is wrong must not keep the rest from being credited.
 */
export class PaymentPoller {
  private readonly ahead: Wanted[] = [];
  private readonly again: Wanted[] = [];
  private readonly alone: Wanted[] = [];
  private running = 0;
  /** Why it is left alone; undefined while it answers. */
  private away: unknown;

  constructor(
    private readonly backend: PaymentBackend,
    private readonly perSecond: number,
    private readonly runtime: Pick<Runtime, 'sleep'>,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => this.refuse(signal.reason));
  }

  /**
   * @param received ids of its payments that were received before
   * @throws UpstreamError; what the signal is aborted with
   */
  async look(reference: string, ahead: boolean, received: readonly string[] = []): Promise<readonly BackendPayment[]> {
    if (this.away !== undefined) throw this.away;
    const answer = Promise.withResolvers<readonly BackendPayment[]>();
    (ahead ? this.ahead : this.again).push({ reference, received, answer });
    queueMicrotask(() => this.begin()); // those that are asked together go together
    return answer.promise;
  }

  /** A request keeps its place for as long as keeps all of them below the limit. */
  private begin(): void {
    while (this.running < AT_ONCE) {
      const batch = this.ahead.splice(0, this.backend.maxBatchSize);
      batch.push(...this.again.splice(0, this.backend.maxBatchSize - batch.length));
      if (batch.length === 0) batch.push(...this.alone.splice(0, 1));
      if (batch.length === 0) return;
      this.running++;
      const pause = this.runtime.sleep((AT_ONCE * 1_000) / this.perSecond, this.signal);
      void Promise.all([this.ask(batch), pause]).then(() => {
        this.running--;
        this.begin();
      });
    }
  }

  private async ask(batch: readonly Wanted[]): Promise<void> {
    try {
      const references = new Set(batch.map(({ reference }) => reference));
      const received = new Set(batch.flatMap((each) => each.received));
      const found = await this.backend.fetchPayments([...references], [...received]);
      const payments = Map.groupBy(found, ({ reference }) => reference);
      for (const { reference, answer } of batch) answer.resolve(payments.get(reference) ?? []);
    } catch (error) {
      const isAway = error instanceof UpstreamError && error.code === 'upstream_unavailable';
      if (batch.length > 1 && !isFailing(error) && this.away === undefined) return void this.alone.push(...batch);
      for (const { answer } of batch) answer.reject(error);
      if (isAway) this.leaveAlone(error);
    }
  }

  /** What waits fails at once: it would only keep looks at other back ends waiting. */
  private leaveAlone(error: UpstreamError): void {
    this.refuse(error);
    void this.runtime.sleep(LEFT_ALONE_MS, this.signal).then(() => {
      if (!this.signal.aborted) this.away = undefined;
    });
  }

  private refuse(error: unknown): void {
    this.away = error;
    for (const { answer } of [...this.ahead.splice(0), ...this.again.splice(0), ...this.alone.splice(0)])
      answer.reject(error);
  }
}

/** Looks at each back end, by its name. */
export function createPaymentPollers(
  backends: PaymentBackendRegistry,
  perSecond: number,
  runtime: Pick<Runtime, 'sleep'>,
  signal: AbortSignal,
): ReadonlyMap<string, PaymentPoller> {
  return new Map(backends.backends.map((each) => [each.name, new PaymentPoller(each, perSecond, runtime, signal)]));
}

/** Whether the back end itself fails: then to ask it as much again would not help it. Else what it said is wrong. */
function isFailing(error: unknown): boolean {
  return error instanceof UpstreamError && (error.code !== 'upstream_error' || error.status !== undefined);
}
