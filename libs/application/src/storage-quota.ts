/** What an account has that was never credited: accounts are free to make. */
const UNFUNDED_BYTES = 1024 * 1024;

/**
 * How many bytes are stored for an account beside the books: its Responses, and the answers that are kept for its
 * Idempotency-Keys. Storing costs nothing.
 */
export class StorageQuota {
  /** @param isFunded whether an account was ever credited */
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
    return (await this.isFunded(accountId)) ? this.bytes : this.least;
  }
}
