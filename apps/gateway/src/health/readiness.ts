import type { FactReader } from '#kernel';

/** The store and the bound that readiness is judged by. */
export abstract class ReadinessOptions {
  abstract readonly store: FactReader;
  abstract readonly maxLagMs: number;
}

/** Readiness of this process. */
export class Readiness {
  /** Set when the process begins to stop. */
  draining = false;
}
