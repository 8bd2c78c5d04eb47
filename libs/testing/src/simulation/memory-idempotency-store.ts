import {
  type ClaimOutcome,
  type ExistingClaim,
  type FileStore,
  type IdempotencyClaim,
  IdempotencyStore,
  restoreImages,
  type SavedHttpResponse,
} from '#application';

const RETENTION_SECONDS = 24 * 60 * 60;
const CLAIM_LEASE_MS = 10_000;

/** What a row of the database contains besides the payer and the key. */
interface StoredClaim extends Omit<ExistingClaim, 'payer' | 'key' | 'isRunning' | 'lifetimeSeconds'> {
  readonly leasedUntilMs: number;
  readonly expiresAtMs: number;
}

/**
 * Behaves like the store in PostgreSQL, for simulations. Each operation is done before its first `await`, so that it is
 * atomic like a statement. Responses are stored as JSON, neither compressed nor encrypted. Only these responses count towards the stored bytes of a payer.
 */
export class MemoryIdempotencyStore extends IdempotencyStore {
  /** The claims of each payer by their keys. */
  private readonly claims = new Map<string, Map<string, StoredClaim>>();

  /**
   * @param getTimeMs returns the time of the clock that all gateways share
   * @param confirmedLeaseMs how long the claim of a request with a hold is valid if its gateway does not end it
   * @param files the images of responses; none by default
   */
  constructor(
    private readonly getTimeMs: () => number,
    private readonly confirmedLeaseMs: number,
    private readonly files: Pick<FileStore, 'find'> = { find: async () => undefined },
  ) {
    super();
  }

  async claim({
    payer,
    key,
    request,
    requestId,
    revision,
    owner,
    lifetimeSeconds = RETENTION_SECONDS,
  }: IdempotencyClaim): Promise<number | undefined> {
    const nowMs = this.getTimeMs();
    const existing = this.claims.get(payer)?.get(key);
    if (existing && existing.expiresAtMs > nowMs) return undefined;
    const storedBytes = this.countStoredBytes(payer); // still with the response that is replaced, as in PostgreSQL
    const claims = this.claims.get(payer) ?? new Map<string, StoredClaim>();
    this.claims.set(payer, claims);
    claims.set(key, {
      request,
      requestId,
      revision,
      owner,
      hasHold: false,
      isLost: false,
      sealedResponse: null,
      leasedUntilMs: nowMs + CLAIM_LEASE_MS,
      expiresAtMs: nowMs + lifetimeSeconds * 1_000,
    });
    return storedBytes;
  }

  async find({ payer, key }: IdempotencyClaim): Promise<ExistingClaim | undefined> {
    const stored = this.claims.get(payer)?.get(key);
    if (!stored) return undefined;
    const { leasedUntilMs, expiresAtMs: _, ...rest } = stored;
    return { payer, key, ...rest, isRunning: leasedUntilMs > this.getTimeMs() };
  }

  async takeOver(existing: ExistingClaim, { requestId, owner, revision }: IdempotencyClaim): Promise<boolean> {
    const nowMs = this.getTimeMs();
    const stored = this.findOwn(existing);
    if (!stored || stored.leasedUntilMs > nowMs || stored.hasHold !== existing.hasHold) return false;
    if (stored.sealedResponse || stored.isLost) return false;
    const leasedUntilMs = nowMs + CLAIM_LEASE_MS;
    return this.update(existing, { owner, requestId, revision, hasHold: false, leasedUntilMs });
  }

  async renew(claim: IdempotencyClaim): Promise<boolean> {
    if (this.findOwn(claim)?.hasHold) return false;
    return this.update(claim, { leasedUntilMs: this.getTimeMs() + CLAIM_LEASE_MS });
  }

  async confirm(claim: IdempotencyClaim): Promise<boolean> {
    return this.update(claim, { hasHold: true, leasedUntilMs: this.getTimeMs() + this.confirmedLeaseMs });
  }

  async end(claim: IdempotencyClaim, outcome: ClaimOutcome, maxBytes = Number.MAX_SAFE_INTEGER): Promise<boolean> {
    switch (outcome) {
      case 'lost':
        return this.update(claim, { isLost: true });
      case 'unknown':
        return this.update(claim, { leasedUntilMs: this.getTimeMs() });
      case 'delivered':
        return this.update(claim, { expiresAtMs: this.getTimeMs() });
      case 'unpaid':
        return this.findOwn(claim) !== undefined && this.remove(claim.payer, claim.key);
      default:
        return this.saveResponse(claim, outcome, maxBytes);
    }
  }

  async open(sealedResponse: Buffer): Promise<Omit<SavedHttpResponse, 'images'> | undefined> {
    const { body, ...head } = JSON.parse(sealedResponse.toString());
    return restoreImages({ ...head, body: Buffer.from(body, 'base64') }, this.files);
  }

  async removeExpired(): Promise<void> {
    const nowMs = this.getTimeMs();
    for (const [payer, claims] of this.claims)
      for (const [key, { expiresAtMs }] of claims) if (expiresAtMs <= nowMs) this.remove(payer, key);
  }

  private saveResponse(claim: IdempotencyClaim, { body, ...head }: SavedHttpResponse, maxBytes: number): boolean {
    const sealedResponse = Buffer.from(JSON.stringify({ ...head, body: body.toString('base64') }));
    if (this.countStoredBytes(claim.payer) + sealedResponse.length <= maxBytes)
      return this.update(claim, { sealedResponse });
    this.update(claim, { isLost: true });
    return false;
  }

  private countStoredBytes(payer: string): number {
    let bytes = 0;
    for (const { sealedResponse } of this.claims.get(payer)?.values() ?? []) bytes += sealedResponse?.length ?? 0;
    return bytes;
  }

  /** Returns the claim while it still has the given owner. */
  private findOwn({ payer, key, owner }: IdempotencyClaim): StoredClaim | undefined {
    const stored = this.claims.get(payer)?.get(key);
    return stored?.owner === owner ? stored : undefined;
  }

  private update(claim: IdempotencyClaim, changes: Partial<StoredClaim>): boolean {
    const stored = this.findOwn(claim);
    if (!stored) return false;
    this.claims.get(claim.payer)?.set(claim.key, { ...stored, ...changes });
    return true;
  }

  private remove(payer: string, key: string): boolean {
    const claims = this.claims.get(payer);
    const isRemoved = claims?.delete(key) ?? false;
    if (claims?.size === 0) this.claims.delete(payer);
    return isRemoved;
  }
}
