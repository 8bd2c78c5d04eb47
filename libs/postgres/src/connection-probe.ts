import { connectClient } from './connections.ts';

/** How long callers share a result. With the time of an attempt, a failure is known within 5 s. */
const MAX_AGE_MS = 2_000;
/** An attempt that takes longer has failed. */
const ATTEMPT_TIMEOUT_MS = 2_000;

export interface ConnectionProbeOptions {
  readonly connectionString: string;
  /** How long callers share a result. */
  readonly maxAgeMs?: number;
}

/**
 * Checks whether new connections to a database can be opened. The open connections of a pool work on after the password
 * has changed, until the pool needs another one. Callers share attempts, so many callers open few connections.
 */
export class ConnectionProbe {
  private lastAttempt: { readonly startedAt: number; readonly result: Promise<void> } | undefined;

  constructor(private readonly options: ConnectionProbeOptions) {}

  /** @throws the error of the last attempt, which started at most `maxAgeMs` before this call */
  check(): Promise<void> {
    const now = performance.now();
    const { maxAgeMs = MAX_AGE_MS } = this.options;
    if (!this.lastAttempt || now - this.lastAttempt.startedAt > maxAgeMs)
      this.lastAttempt = { startedAt: now, result: this.connect() };
    return this.lastAttempt.result;
  }

  private async connect(): Promise<void> {
    const { connectionString } = this.options;
    const client = await connectClient({
      connectionString,
      name: 'probe',
      connectTimeoutMs: ATTEMPT_TIMEOUT_MS,
      queryTimeoutMs: ATTEMPT_TIMEOUT_MS,
    });
    try {
      await client.query('select 1');
    } finally {
      await client.end().catch(() => {}); // already closed
    }
  }
}
