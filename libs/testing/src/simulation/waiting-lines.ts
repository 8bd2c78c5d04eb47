import type { VirtualTime } from './virtual-time.ts';

const MAX_WAITING = 64;
const MAX_WAIT_MS = 30_000;
const FIRST_RETRY_MS = 100;
const RETRY_MS = 250;

export interface WaitingRequest {
  readonly keyId: string | null;
  /** @param waiting number of other requests that wait; undefined for the first attempt @returns whether it has started */
  tryStart(waiting: number | undefined): boolean;
  reject(waitedMs: number): void;
}

/** The requests that wait for money at one gateway, as in `HoldQueue`, in virtual time. */
export class WaitingLines {
  private readonly line: WaitingRequest[] = [];

  constructor(private readonly time: VirtualTime) {}

  add(request: WaitingRequest): void {
    const { length } = this.line;
    if (length === 0 && request.tryStart(undefined)) return;
    if (length >= MAX_WAITING) {
      if (!request.tryStart(length)) request.reject(0);
      return;
    }
    this.line.push(request);
    if (length === 0) this.scheduleRetry(FIRST_RETRY_MS);
    this.time.schedule(MAX_WAIT_MS, () => {
      if (!this.line.includes(request)) return;
      if (!request.tryStart(this.line.length - 1)) request.reject(MAX_WAIT_MS);
      this.remove(request);
    });
  }

  /** Removes a request that has started, was rejected, or whose client has disconnected. */
  remove(request: WaitingRequest): void {
    if (this.line.includes(request)) this.line.splice(this.line.indexOf(request), 1);
  }

  /** Removes all requests, because the gateway has died. Returns their number. */
  removeAll(): number {
    return this.line.splice(0).length;
  }

  /** Lets the requests try again in their order, because money of the account was released at this gateway. */
  wake(): void {
    for (const request of [...this.line]) if (request.tryStart(this.line.length - 1)) this.remove(request);
  }

  /** Lets the requests try again, because other gateways may have released money. */
  private scheduleRetry(delayMs: number): void {
    this.time.schedule(delayMs, () => {
      if (this.line.length === 0) return;
      this.wake();
      this.scheduleRetry(RETRY_MS);
    });
  }
}
