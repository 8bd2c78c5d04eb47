import { withTimeout } from '#kernel';
import { nodeTimers } from '#runtime';

const CHECK_TIMEOUT_MS = 2_000;

/** The result of a check, with metrics for the operator. */
export interface CheckResult {
  readonly ok: boolean;
  readonly [metric: string]: unknown;
}

/** A check that throws or does not end in time has failed. */
export type HealthCheck = () => CheckResult | Promise<CheckResult>;

export interface ReadinessReport {
  readonly status: 'ok' | 'unavailable';
  readonly draining: boolean;
  readonly checks: Readonly<Record<string, CheckResult & { readonly required: boolean }>>;
}

/**
 * Determines whether this process should receive traffic, by named checks that modules add when they start. A failed
 * required check takes the process out of service. A failed optional check is only reported: a stopped projector, for
 * example, must not take every process out of service.
 */
export class Readiness {
  /** Set when the process begins to stop. */
  isDraining = false;
  private readonly checks = new Map<string, { readonly check: HealthCheck; readonly required: boolean }>();

  /** @param timeoutMs how long a check may take */
  constructor(private readonly timeoutMs = CHECK_TIMEOUT_MS) {}

  /** Adds a check whose failure takes the process out of service. */
  addRequired(name: string, check: HealthCheck): void {
    this.checks.set(name, { check, required: true });
  }

  /** Adds a check whose failure is only reported. */
  addOptional(name: string, check: HealthCheck): void {
    this.checks.set(name, { check, required: false });
  }

  async report(): Promise<ReadinessReport> {
    const pendingChecks = [...this.checks].map(async ([name, { check, required }]) => {
      return [name, { ...(await runWithTimeout(this.timeoutMs, check)), required }] as const;
    });
    const checks = Object.fromEntries(await Promise.all(pendingChecks));
    const isHealthy = Object.values(checks).every(({ ok, required }) => ok || !required);
    return { status: isHealthy && !this.isDraining ? 'ok' : 'unavailable', draining: this.isDraining, checks };
  }
}

/** Omits the reason of a failure, because the health routes are public. */
async function runWithTimeout(milliseconds: number, check: HealthCheck): Promise<CheckResult> {
  try {
    return await withTimeout(nodeTimers, milliseconds, Promise.resolve(check()), () => ({ ok: false, late: true }));
  } catch {
    return { ok: false }; // the checked component reports its failures itself
  }
}
