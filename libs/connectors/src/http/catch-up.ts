import { type FailureCode, UpstreamError } from '#application';

/**
 * The provider continues to generate and to bill while its response is read on. So this lasts longer than one interval
 * only if more data arrives than is generated in this time.
 */
const INTERVAL_MS = 200;
const MAX_INTERVALS = 5;
const MAX_GENERATED_BYTES = 256 * 1024;
/** After these failures nothing pays for more: only what this process has already received is read. */
const UNPAID_CODES: ReadonlySet<FailureCode> = new Set(['hold_used_up', 'hold_ended']);

/**
 * Reads on an aborted response whose receiver was full. Data that the provider has already sent, such as the usage at
 * the end, may then still be unread.
 */
export class CatchUp {
  private bytes = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param end called when no more is to be read */
  constructor(private readonly end: () => void) {}

  /** @param resume reads synchronously what has been received, and then what arrives */
  start(reason: unknown, resume: () => void): void {
    const isUnpaid = reason instanceof UpstreamError && UNPAID_CODES.has(reason.code);
    if (!isUnpaid) this.wait(MAX_INTERVALS);
    resume();
    if (isUnpaid) this.end();
  }

  recordRead(bytes: number): void {
    this.bytes += bytes;
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private wait(intervals: number): void {
    this.bytes = 0;
    this.timer = setTimeout(() => {
      if (this.bytes > MAX_GENERATED_BYTES && intervals > 1) this.wait(intervals - 1);
      else this.end();
    }, INTERVAL_MS);
  }
}
