import type pg from 'pg';
import type { FreshnessCheck } from './freshness-check.ts';
import { findTopupIds } from './topups.ts';

export interface TopupLookupResult {
  /** Top-up ids by the reference of the payment backend. */
  readonly ids: ReadonlyMap<string, string>;
  /** True if a reference without an id belongs to no top-up. If false, the read model may lack the top-up. */
  readonly isComplete: boolean;
}

/**
 * Finds top-ups by the references of their payment backends. Distinguishes an unknown reference from one that the read
 * model does not include yet, so that no payment is dropped as that of a third party.
 */
export class TopupFinder {
  constructor(
    private readonly pool: pg.Pool,
    private readonly freshnessCheck: FreshnessCheck,
  ) {}

  /** @param timeoutMs how long to wait for a lagging read model if a reference is not found */
  async find(backend: string, references: readonly string[], timeoutMs: number): Promise<TopupLookupResult> {
    const ids = await findTopupIds(this.pool, backend, references);
    if (references.every((reference) => ids.has(reference))) return { ids, isComplete: true };
    const isComplete = await this.freshnessCheck.waitUntilCurrent(['topups'], timeoutMs);
    return { ids: await findTopupIds(this.pool, backend, references), isComplete };
  }
}
