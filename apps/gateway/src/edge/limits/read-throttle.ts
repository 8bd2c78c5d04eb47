/** Limits how fast a process reads large bodies in total. Senders wait because the gateway reads no further. */
import { setTimeout as delay } from 'node:timers/promises';

const MIB = 1024 * 1024;
/** Reading and scanning at this rate takes about an eighth of the event loop. */
const BYTES_PER_MS = (32 * MIB) / 1_000;
/** So much may be read at any rate, after a pause. */
const MAX_BURST_BYTES = MIB;

export class ReadThrottle {
  private availableBytes = MAX_BURST_BYTES;
  private countedAtMs = performance.now();

  /**
   * Counts bytes that were read.
   * @returns undefined if more may be read at once, else a promise that resolves when more may be read
   */
  count(bytes: number): Promise<void> | undefined {
    const now = performance.now();
    const addedBytes = (now - this.countedAtMs) * BYTES_PER_MS;
    this.countedAtMs = now;
    this.availableBytes = Math.min(this.availableBytes + addedBytes, MAX_BURST_BYTES) - bytes;
    return this.availableBytes >= 0 ? undefined : delay(-this.availableBytes / BYTES_PER_MS);
  }
}
