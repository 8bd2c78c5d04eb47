const CHECK_TIMEOUT_MS = 2_000;

/** What a check found: whether all is well, and figures for whoever looks. */
export interface CheckResult {
  readonly ok: boolean;
  readonly [metric: string]: unknown;
}

/** One look at one thing. What throws or takes longer than two seconds is not well. */
export type HealthCheck = () => CheckResult | Promise<CheckResult>;

export interface ReadinessReport {
  readonly status: 'ok' | 'unavailable';
  readonly draining: boolean;
  readonly checks: Readonly<Record<string, CheckResult & { readonly required: boolean }>>;
}

/**
 * Whether this process does what it is there for, as a list of named checks: whatever knows one adds it at the start. A required
 * one that is not well takes the process out of service; others are only shown. What all processes share, such as a projector that
 * stands still, is no reason to take each of them out.
 */
export class Readiness {
  /** Set when the process begins to stop. */
  isDraining = false;
  private readonly checks = new Map<string, { readonly check: HealthCheck; readonly required: boolean }>();

  /** @param timeoutMs how long a check may take */
  constructor(private readonly timeoutMs = CHECK_TIMEOUT_MS) {}

  /** Without this the process is of no use to anybody. */
  addRequired(name: string, check: HealthCheck): void {
    this.checks.set(name, { check, required: true });
  }

  /** Worth knowing, and no reason to send traffic elsewhere. */
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

/** What went wrong is no business of whoever may ask. */
async function runWithTimeout(milliseconds: number, check: HealthCheck): Promise<CheckResult> {
  const { promise, resolve } = Promise.withResolvers<CheckResult>();
  const timer = setTimeout(() => resolve({ ok: false, late: true }), milliseconds);
  try {
    return await Promise.race([check(), promise]);
  } catch {
    return { ok: false };
  } finally {
    clearTimeout(timer);
  }
}
