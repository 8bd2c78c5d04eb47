import type pg from 'pg';
import type { FreshnessCheck } from './freshness-check.ts';
import { findTopups } from './topups.ts';

/** The ids of top-ups, by their references. */
export interface FoundTopups {
  readonly ids: ReadonlyMap<string, string>;
  /** What is not among them is no top-up of ours. Else the read model may not show it yet. */
  readonly complete: boolean;
}

/** Top-ups by what their back ends call them. A read model that is late is no reason to take a payment for a stranger's. */
export class TopupsByReference {
  constructor(
    private readonly pool: pg.Pool,
    private readonly upToDate: FreshnessCheck,
  ) {}

  /** @param withinMs how long a read model that is behind is waited for, where one of them is not found */
  async find(backend: string, references: readonly string[], withinMs: number): Promise<FoundTopups> {
    const ids = await findTopups(this.pool, backend, references);
    if (references.every((each) => ids.has(each))) return { ids, complete: true };
    const complete = await this.upToDate.are(['topups'], withinMs);
    return { ids: await findTopups(this.pool, backend, references), complete };
  }
}
