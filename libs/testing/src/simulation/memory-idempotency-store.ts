import {
  type ClaimOutcome,
  type ExistingClaim,
  type IdempotencyClaim,
  IdempotencyStore,
  type SavedHttpResponse,
} from '#application';

const RETENTION_SECONDS = 24 * 60 * 60;
const CLAIM_LEASE_MS = 10_000;

interface Row {
  request: string;
  requestId: string;
  revision: number;
  owner: string;
  leasedUntilMs: number;
  expiresAtMs: number;
  hasHold: boolean;
  isLost: boolean;
  sealedResponse: Buffer | null;
}

/** Claims on idempotency keys in memory. Responses are not sealed, and have no images. */
export class MemoryIdempotencyStore extends IdempotencyStore {
  readonly rows = new Map<string, Row>();

  /** @param holdLeaseMs how long the claim of a request with a hold is valid if its gateway does not end it */
  constructor(
    private readonly getTimeMs: () => number,
    private readonly holdLeaseMs: number,
  ) {
    super();
  }

  async claim(claim: IdempotencyClaim): Promise<number | undefined> {
    const { request, requestId, revision, owner, lifetimeSeconds = RETENTION_SECONDS } = claim;
    const existing = this.rows.get(toKey(claim));
    const nowMs = this.getTimeMs();
    if (existing && existing.expiresAtMs > nowMs) return undefined;
    const timing = { leasedUntilMs: nowMs + CLAIM_LEASE_MS, expiresAtMs: nowMs + lifetimeSeconds * 1_000 };
    const state = { hasHold: false, isLost: false, sealedResponse: null };
    this.rows.set(toKey(claim), { request, requestId, revision, owner, ...timing, ...state });
    return 0;
  }

  async find(claim: IdempotencyClaim): Promise<ExistingClaim | undefined> {
    const row = this.rows.get(toKey(claim));
    if (!row) return undefined;
    const { leasedUntilMs, expiresAtMs: _, ...stored } = row;
    return { payer: claim.payer, key: claim.key, ...stored, isRunning: leasedUntilMs > this.getTimeMs() };
  }

  async takeOver(existing: ExistingClaim, { requestId, owner, revision }: IdempotencyClaim): Promise<boolean> {
    const nowMs = this.getTimeMs();
    return this.change(existing, (row) => {
      const hasEnded = row.sealedResponse !== null || row.isLost;
      if (row.leasedUntilMs > nowMs || row.hasHold !== existing.hasHold || hasEnded) return false;
      Object.assign(row, { owner, requestId, revision, hasHold: false, leasedUntilMs: nowMs + CLAIM_LEASE_MS });
      return true;
    });
  }

  async renew(claim: IdempotencyClaim): Promise<boolean> {
    return this.change(claim, (row) => {
      if (row.hasHold) return false;
      row.leasedUntilMs = this.getTimeMs() + CLAIM_LEASE_MS;
      return true;
    });
  }

  async confirm(claim: IdempotencyClaim): Promise<boolean> {
    return this.change(claim, (row) => {
      row.hasHold = true;
      row.leasedUntilMs = this.getTimeMs() + this.holdLeaseMs;
      return true;
    });
  }

  async end(claim: IdempotencyClaim, outcome: ClaimOutcome): Promise<boolean> {
    return this.change(claim, (row) => {
      if (outcome === 'lost') row.isLost = true;
      else if (outcome === 'unknown') row.leasedUntilMs = this.getTimeMs();
      else if (outcome === 'delivered') row.expiresAtMs = this.getTimeMs();
      else if (outcome === 'unpaid') this.rows.delete(toKey(claim));
      else row.sealedResponse = toBytes(outcome);
      return true;
    });
  }

  async open(sealed: Buffer): Promise<SavedHttpResponse> {
    const { body, ...head } = JSON.parse(sealed.toString());
    return { ...head, body: Buffer.from(body, 'base64') };
  }

  /** Changes the row of a claim if the claim still has its owner. */
  private change(claim: IdempotencyClaim, change: (row: Row) => boolean): boolean {
    const row = this.rows.get(toKey(claim));
    return row !== undefined && row.owner === claim.owner && change(row);
  }
}

function toKey({ payer, key }: IdempotencyClaim): string {
  return `${payer} ${key}`;
}

function toBytes({ body, ...head }: SavedHttpResponse): Buffer {
  return Buffer.from(JSON.stringify({ ...head, body: body.toString('base64') }));
}
