import { type MedianPrice, readMedianPrices } from '#projections';
import type { ReadModelReader } from './read-model-reader.ts';

/** Medians move slowly, and the list of models is requested often. */
const CACHE_TTL_MS = 30_000;

/** The median cost of a query of each model, from the history of all accounts. */
export class MedianCosts {
  private cachedCosts: Promise<ReadonlyMap<string, MedianPrice>> | undefined;
  private readAt = 0;

  constructor(private readonly readModels: ReadModelReader) {}

  /** Empty when the history cannot be read: the list of models does not fail because of it. */
  loadByModel(): Promise<ReadonlyMap<string, MedianPrice>> {
    const now = performance.now();
    if (!this.cachedCosts || now - this.readAt > CACHE_TTL_MS) {
      this.readAt = now;
      this.cachedCosts = readMedianPrices(this.readModels.pool).catch(() => new Map());
    }
    return this.cachedCosts;
  }
}
