import { type MedianPrice, readMedianPrices } from '#projections';
import type { ReadModelReader } from './read-model-reader.ts';

/** Medians change slowly, and the list of models is requested often. */
const CACHE_TTL_MS = 30_000;

/** The median price of a query for each model, from the charged ones among the newest queries of all accounts. */
export class MedianCosts {
  private cachedCosts: Promise<ReadonlyMap<string, MedianPrice>> | undefined;
  private readAt = 0;

  constructor(private readonly readModels: ReadModelReader) {}

  /** Returns an empty map if the history cannot be read, so that the list of models is still returned. */
  loadByModel(): Promise<ReadonlyMap<string, MedianPrice>> {
    const now = performance.now();
    if (!this.cachedCosts || now - this.readAt > CACHE_TTL_MS) {
      this.readAt = now;
      // other reads of the history report the error
      this.cachedCosts = readMedianPrices(this.readModels.pool).catch(() => new Map());
    }
    return this.cachedCosts;
  }
}
