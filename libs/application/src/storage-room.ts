import { LRUCache } from 'lru-cache';

/** What an account has that was never credited: accounts are free to make. */
const UNFUNDED_BYTES = 1024 * 1024;
const REMEMBERED = 100_000;

/**
 * How many bytes are stored for an account beside the books: its Responses, and the answers that are kept for its
 * Idempotency-Keys. Storing costs nothing.
 */
export class StorageRoom {
  /** Whoever was credited once stays so. */
  private readonly funded = new LRUCache<string, true>({ maxSize: REMEMBERED, sizeCalculation: () => 1 });

  constructor(
    private readonly bytes: number,
    private readonly isFunded: (accountId: string) => Promise<boolean>,
  ) {}

  /** What any account may have. */
  get least(): number {
    return Math.min(UNFUNDED_BYTES, this.bytes);
  }

  /** Bytes that may be stored for an account. */
  async of(accountId: string): Promise<number> {
    if (this.funded.has(accountId)) return this.bytes;
    if (!(await this.isFunded(accountId))) return this.least;
    this.funded.set(accountId, true);
    return this.bytes;
  }
}
