import type { Failure } from '../failure.ts';

/** A protocol that callers speak: how errors are written in it. */
export interface Face {
  readonly name: string;
  /** The body of an error. */
  error(failure: Failure): object;
  /** An event that ends a stream: its answer is not whole. */
  errorEvent(failure: Failure): string;
  /** An event that says nothing. */
  readonly keepAlive: string;
}
