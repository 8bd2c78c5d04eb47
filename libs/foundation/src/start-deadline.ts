/** One deadline for all steps of a start. What is not available yet is waited for, but not what waiting cannot change. */

import { setTimeout as delay } from 'node:timers/promises';
import { retry, StoreUnavailableError } from '#kernel';
import { nodeRandomness } from '#runtime';
import { StartError } from './start-error.ts';

/** How often a start that waits says for what. */
const REPORT_INTERVAL_MS = 5_000;
const BACKOFF = { minMs: 100, maxMs: 1_000 };
/** SQLSTATE too_many_connections. */
const TOO_MANY_CONNECTIONS = '53300';
/**
 * Classes of SQLSTATE that mean: not now. Connection failures, transactions that another one rolled back, lack of
 * resources, and operator intervention.
 */
const TRANSIENT_ERROR_CLASSES: ReadonlySet<string> = new Set(['08', '40', '53', '57']);
/**
 * Errors of a network or server that is not up yet. ENOTFOUND is among them, although an invalid hostname causes it too:
 * the name servers of Docker and Kubernetes do not know a service that is not running, as after a restart of the host.
 */
const TRANSIENT_NETWORK_ERRORS: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'ENOTFOUND',
]);
/** Errors without a code, of `pg` and `pg-pool`: the server closed the connection, or did not respond in time. */
const CONNECTION_LOSS =
  /^(Connection terminated\b|timeout expired$|timeout exceeded when trying to connect$|Query read timeout$)/;

/** Something that a start needs is not there yet, but may be later. The message is the end of a sentence. */
export class NotReadyError extends Error {}

/** One step of a start that may have to wait. */
export interface StartStep {
  /** Milliseconds until the deadline; 0 after it. */
  readonly remainingMs: number;
  /** Sets the reason that the start reports while it waits for this step. */
  explain(reason: string): void;
}

export class StartDeadline {
  private readonly endsAt: number;
  /** The steps that have not finished, with the reason of the last failed attempt. */
  private readonly pending = new Map<symbol, { readonly what: string; reason: string | undefined }>();
  /** Ends the regular reports. */
  private reports: AbortController | undefined;
  /** Aborted by `end`. */
  private readonly ended = new AbortController();

  /**
   * The time starts now.
   * @param report is called with a sentence when the start begins to wait for something, and every 5 s while it waits
   */
  constructor(
    private readonly timeoutMs: number,
    private readonly report: (sentence: string) => void,
  ) {
    this.endsAt = performance.now() + timeoutMs;
  }

  /**
   * Runs a step of the start, again and again while what it needs is late. After the deadline nothing is tried again,
   * but an attempt that runs is not interrupted: it may be a migration, which each process would then begin again.
   * So an attempt limits its own time.
   * @param what the end of "waiting for …"
   * @throws StartError with one sentence that names what was late, at the deadline; any error that waiting cannot
   *   change, at once; an AbortError after `end`
   */
  async waitFor<T>(what: string, attempt: (step: StartStep) => Promise<T>): Promise<T> {
    const key = Symbol(what);
    const step = this.createStep(key, what);
    this.pending.set(key, { what, reason: undefined });
    this.startReports();
    try {
      return await retry(() => attempt(step), {
        ...BACKOFF,
        chance: nodeRandomness.chance,
        sleep: (waitMs) => delay(Math.min(waitMs, step.remainingMs), undefined, { signal: this.ended.signal }),
        shouldRetry: (error) => {
          if (!isTransient(error)) return false;
          step.explain(describeError(error));
          if (step.remainingMs === 0) throw this.createError(error);
          return true;
        },
      });
    } finally {
      this.pending.delete(key);
      if (this.pending.size === 0) {
        this.reports?.abort();
        this.reports = undefined;
      }
    }
  }

  /** Ends the steps that wait, because the start has failed or the process stops. An attempt that runs is its last. */
  end(): void {
    this.ended.abort();
  }

  private createStep(key: symbol, what: string): StartStep {
    const getRemainingMs = () => Math.max(0, this.endsAt - performance.now());
    return {
      get remainingMs() {
        return getRemainingMs();
      },
      explain: (reason) => {
        const isFirst = this.pending.get(key)?.reason === undefined;
        this.pending.set(key, { what, reason });
        if (isFirst) this.reportPending();
      },
    };
  }

  private startReports(): void {
    if (this.reports) return;
    this.reports = new AbortController();
    const { signal } = this.reports;
    const repeat = async () => {
      for (;;) {
        await delay(REPORT_INTERVAL_MS, undefined, { signal, ref: false });
        this.reportPending();
      }
    };
    repeat().catch(() => {}); // aborted
  }

  private reportPending(): void {
    const seconds = Math.max(0, Math.ceil((this.endsAt - performance.now()) / 1_000));
    this.report(`the start is waiting for ${this.describePending()}; ${seconds} s remain`);
  }

  private createError(cause: unknown): StartError {
    const seconds = Math.ceil(this.timeoutMs / 1_000);
    return new StartError(
      `The start ended after ${seconds} s (START_TIMEOUT_MS) because it was still waiting for ${this.describePending()}.`,
      { cause },
    );
  }

  private describePending(): string {
    const steps = [...this.pending.values()];
    return steps.map(({ what, reason }) => (reason === undefined ? what : `${what} (${reason})`)).join(' and ');
  }
}

/** Returns the reason of a failed attempt, without a period. */
function describeError(error: unknown): string {
  const reason = error instanceof StoreUnavailableError && error.cause instanceof Error ? error.cause : error;
  const { message, code } = reason as NodeJS.ErrnoException;
  const text = (message || String(code)).replace(/\.$/, '');
  return code === TOO_MANY_CONNECTIONS
    ? `${text}: max_connections of PostgreSQL, or the connection limit of the role or database, is reached`
    : text;
}

/**
 * Whether a later attempt may succeed: the server did not respond, or responded that it cannot serve now. Other errors,
 * such as those of an invalid setting, end the start at once.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof StoreUnavailableError) return !isRejection(error.cause) || isTransient(error.cause);
  if (error instanceof NotReadyError) return true;
  if (!(error instanceof Error) || error instanceof StartError) return false;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code === undefined) return CONNECTION_LOSS.test(message);
  if (isRejection(error)) return TRANSIENT_ERROR_CLASSES.has(code.slice(0, 2));
  const hasNoSocketFile = code === 'ENOENT' && syscall === 'connect'; // the server creates the file when it starts
  return hasNoSocketFile || TRANSIENT_NETWORK_ERRORS.has(code);
}

/** Whether PostgreSQL has responded with this error. */
export function isRejection(error: unknown): error is Error {
  return error instanceof Error && 'severity' in error;
}
