/** What an account has that was never credited: accounts are free to make. */
const UNFUNDED_BYTES = 1024 * 1024;

/**
 * How many bytes are stored for an account beside the books: its Responses, and the answers that are kept for its
 * Idempotency-Keys. Storing costs nothing.
 */
export class StorageQuota {
  /** @param isFunded whether an account was ever credited */
  constructor(
    private readonly fundedBytes: number,
    private readonly isFunded: (accountId: string) => Promise<boolean>,
  ) {}

  /** What any account may have. */
  get minBytes(): number {
    return Math.min(UNFUNDED_BYTES, this.fundedBytes);
  }

  /** Bytes that may be stored for an account. */
  async loadMaxBytes(accountId: string): Promise<number> {
    return (await this.isFunded(accountId)) ? this.fundedBytes : this.minBytes;
  }
}
