/** How long a paid call may take. */
export abstract class CallLimits {
  /** Longest time for a whole answer. */
  abstract readonly totalTimeoutMs: number;
  /** How long an answer is read on when its client has gone. */
  abstract readonly drainTimeoutMs: number;
}
