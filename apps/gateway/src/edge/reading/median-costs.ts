import { type MedianPrice, readMedianPrices } from '#projections';
import type { ReadModelReader } from './read-model-reader.ts';

/** Medians move slowly, and the list of models is requested often. */
const KEPT_MS = 30_000;

/** The median cost of a query of each model, from the history of all accounts. */
export class MedianCosts {
  private known: Promise<ReadonlyMap<string, MedianPrice>> | undefined;
  private readAt = 0;

  constructor(private readonly books: ReadModelReader) {}

  /** Empty when the history cannot be read: the list of models does not fail because of it. */
  byModel(): Promise<ReadonlyMap<string, MedianPrice>> {
    const now = performance.now();
    if (!this.known || now - this.readAt > KEPT_MS) {
      this.readAt = now;
      this.known = readMedianPrices(this.books.pool).catch(() => new Map());
    }
    return this.known;
  }
}
