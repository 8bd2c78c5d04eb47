import type pg from 'pg';
import type { FreshnessCheck } from './freshness-check.ts';
import { findTopupIds } from './topups.ts';

/** The ids of top-ups, by their references. */
export interface TopupLookupResult {
  readonly ids: ReadonlyMap<string, string>;
  /** What is not among them is no top-up of ours. Else the read model may not show it yet. */
  readonly isComplete: boolean;
}

/** Top-ups by what their back ends call them. A read model that is late is no reason to take a payment for a stranger's. */
export class TopupFinder {
  constructor(
    private readonly pool: pg.Pool,
    private readonly freshnessCheck: FreshnessCheck,
  ) {}

  /** @param timeoutMs how long a read model that is behind is waited for, where one of them is not found */
  async find(backend: string, references: readonly string[], timeoutMs: number): Promise<TopupLookupResult> {
    const ids = await findTopupIds(this.pool, backend, references);
    if (references.every((reference) => ids.has(reference))) return { ids, isComplete: true };
    const isComplete = await this.freshnessCheck.waitUntilCurrent(['topups'], timeoutMs);
    return { ids: await findTopupIds(this.pool, backend, references), isComplete };
  }
}
