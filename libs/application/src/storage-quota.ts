/** Quota of an account that was never credited. It is small because creating accounts costs nothing. */
const UNFUNDED_BYTES = 1024 * 1024;

/**
 * Limits the bytes that are stored for an account outside the ledger: its Responses and the saved responses of its
 * Idempotency-Keys. Storing them costs nothing.
 */
export class StorageQuota {
  /** @param isFunded whether an account was ever credited */
  constructor(
    private readonly fundedBytes: number,
    private readonly isFunded: (accountId: string) => Promise<boolean>,
  ) {}

  /** The lowest quota that an account can have, in bytes. Below it, no account has to be read. */
  get minBytes(): number {
    return Math.min(UNFUNDED_BYTES, this.fundedBytes);
  }

  /** Returns the quota of an account, in bytes. */
  async loadMaxBytes(accountId: string): Promise<number> {
    return (await this.isFunded(accountId)) ? this.fundedBytes : this.minBytes;
  }
}
