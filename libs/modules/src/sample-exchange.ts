import type { SampleRegistry, SampleStore } from '#application';
import { withStoreTimeout } from '#kernel';
import { nodeTimers } from '#runtime';

const EXCHANGE_INTERVAL_MS = 5_000;
/** Maximum time for which a start waits for the measurements of other processes. */
const MAX_START_DELAY_MS = 2_000;

/** Exchanges measurements with other processes at regular intervals. */
export class SampleExchange {
  private timer: NodeJS.Timeout | undefined;
  private current: Promise<void> | undefined;

  constructor(
    private readonly samples: SampleRegistry,
    private readonly store: SampleStore,
    private readonly reportError: (problem: string, error: unknown) => void,
  ) {}

  /** Resolves with the measurements of other processes, or without them if the store does not respond in time. */
  async start(maxDelayMs = MAX_START_DELAY_MS): Promise<void> {
    this.timer = setInterval(() => void this.exchange(), EXCHANGE_INTERVAL_MS).unref();
    const problem = 'the database did not respond in time';
    await withStoreTimeout(nodeTimers, maxDelayMs, this.exchange(), { problem }).catch((error) => this.report(error));
  }

  /** Resolves after the running exchange, if there is one, else after a new one. A failure is only reported. */
  exchange(): Promise<void> {
    this.current ??= this.samples
      .exchange(this.store)
      .catch((error) => this.report(error))
      .finally(() => {
        this.current = undefined;
      });
    return this.current;
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.current;
  }

  private report(error: unknown): void {
    this.reportError('measurements of models could not be shared; retrying', error);
  }
}
