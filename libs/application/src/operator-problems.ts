/**
 * The problems of the operator's accounts at external services, such as a rejected credential or an empty balance, as
 * this process observed them, and which models cannot be served because of them.
 */
import type { Catalogue, OperatorProblemReason } from '#catalogue';
import { ActionRequiredError, type Runtime } from '#kernel';
import { createOperatorError, MESSAGE_PROVIDER_UNAVAILABLE, type OperatorProblem, UpstreamError } from './errors.ts';

/** What the calls to one external service show about the operator's account there. */
export interface ServiceMonitor {
  /** Call after a response to a request with the credential. */
  recordSuccess(): void;
  /**
   * Call after any failure. Only one with an `operatorProblem` counts.
   * @param requestedPauseSeconds the minimum pause that the service has requested
   */
  recordFailure(error: unknown, requestedPauseSeconds?: number): void;
  /**
   * Call before a request that costs money. After a problem that concerns all requests the service rests, for longer
   * with each further one. After the rest one request shows whether the problem has ended.
   * @throws UpstreamError while the service rests
   */
  assertUsable(): void;
}

/** Of a service without a credential. */
export const NO_SERVICE_MONITOR: ServiceMonitor = { recordSuccess() {}, recordFailure() {}, assertUsable() {} };

/** Limits the length of a log line and of the public health response. */
const MAX_LISTED_MODELS = 20;
const MIN_REST_MS = 1_000;
const MAX_REST_MS = 300_000;
/**
 * How long other requests wait for the response to the first one after a rest. A rejection arrives sooner. So a caller
 * whose request takes longer, or who disconnects, does not prolong the rest for others.
 */
const PROBE_MS = 5_000;
/** How often a problem that concerns single requests is reported while it continues. */
const REPEAT_MS = 24 * 60 * 60 * 1_000;

/** What the operator reads about each problem. */
const DESCRIPTIONS: Readonly<Record<OperatorProblemReason, string>> = {
  credential: 'rejects its credential',
  balance: 'serves no requests because the balance or credit of the account is used up',
  limit: 'serves no requests because the account has reached a limit',
  blocked: 'serves no requests because the account is blocked or may not be used from here',
  permission: 'does not let the account use a model',
  request_too_large: 'rejects requests that are larger than the rate limit of the account',
  model_removed: 'no longer has a model',
};

/** Models and data lookups that no provider serves at present because of a problem. */
export interface UnservedModels {
  readonly count: number;
  /** The names of at most `MAX_LISTED_MODELS` of them. */
  readonly models: readonly string[];
}

type ServedCatalogue = Pick<Catalogue, 'models' | 'dataEndpoints'>;

/** How often calls of each service failed because of each problem since the start of this process. */
export type ProblemCounts = Readonly<Record<string, Readonly<Partial<Record<OperatorProblemReason, number>>>>>;

export class OperatorProblems {
  private readonly monitors = new Map<string, ServiceMonitor>();
  /** Problems that concern all requests of a service and that have not ended yet, by service. */
  private readonly outages = new Map<string, OperatorProblemReason>();
  private readonly failureCounts: Record<string, Partial<Record<OperatorProblemReason, number>>> = {};
  private findCatalogue: () => ServedCatalogue | undefined = () => undefined;

  /**
   * @param runtime its `reportError` gets each problem once until it has ended, as an `ActionRequiredError`
   * @param getVariable returns the environment variable that sets a setting: its own, or that of its file
   */
  constructor(
    private readonly runtime: Pick<Runtime, 'now' | 'reportError'>,
    private readonly getVariable = (setting: string) => setting,
  ) {}

  /** From now on, names the models of a catalogue that no longer can be served. */
  useCatalogue(catalogues: { readonly current: ServedCatalogue }): void {
    this.findCatalogue = () => catalogues.current;
  }

  /** Returns the names of the services that reject their credentials, in alphabetical order. */
  listRejected(): readonly string[] {
    return [...this.outages].flatMap(([service, reason]) => (reason === 'credential' ? [service] : [])).sort();
  }

  /** Returns the problem of each service that serves no requests at present. */
  listOutages(): Readonly<Record<string, OperatorProblemReason>> {
    return Object.fromEntries([...this.outages].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Returns how often calls failed because of a problem, by service. */
  get failures(): ProblemCounts {
    return this.failureCounts;
  }

  /** Returns the models that cannot be served, by the service that has a problem. */
  listUnservedModels(): Readonly<Record<string, UnservedModels>> {
    const services = [...this.outages.keys()].sort();
    const unserved = services.map((service) => [service, this.findUnservedModels(service)] as const);
    return Object.fromEntries(unserved.filter(([, { count }]) => count > 0));
  }

  /**
   * Returns the monitor of a credential. A later monitor of the same service is that of a new credential: nothing is
   * known about it yet, and late responses to the previous credential no longer count.
   * @param service unique name, such as `openai`; public, because health lists it
   * @param description what the operator reads, such as `the provider openai`
   * @param setting the setting that has the credential
   */
  createMonitor(service: string, description: string, setting: string): ServiceMonitor {
    const isCurrent = () => this.monitors.get(service) === monitor;
    const rest = new Rest(this.runtime.now);
    const lastReports = new Map<OperatorProblemReason, number>();
    const report = (reason: OperatorProblemReason) => {
      lastReports.set(reason, this.runtime.now());
      const problem = `${description} ${describeProblem(reason)} (${this.getVariable(setting)})`;
      this.runtime.reportError(
        problem,
        new ActionRequiredError(formatAdvice(reason, this.findUnservedModels(service))),
      );
    };
    const monitor: ServiceMonitor = {
      recordSuccess: () => {
        rest.end();
        if (isCurrent()) this.outages.delete(service);
      },
      recordFailure: (error, requestedPauseSeconds = 0) => {
        const problem = error instanceof UpstreamError && !error.isResting ? error.operatorProblem : undefined;
        if (problem?.scope !== 'service') rest.repeatAttempt();
        if (!isCurrent() || problem === undefined) return;
        const { reason, scope } = problem;
        this.count(service, reason);
        if (scope === 'endpoint') return; // `EndpointHealth` knows the model
        if (scope === 'service') rest.begin(problem, requestedPauseSeconds * 1_000);
        const isOutage = scope === 'service' || reason === 'credential';
        const isReported = isOutage
          ? this.outages.get(service) === reason
          : this.runtime.now() - (lastReports.get(reason) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS;
        if (isOutage) this.outages.set(service, reason);
        if (!isReported) report(reason);
      },
      assertUsable: () => rest.requestAttempt(),
    };
    this.monitors.set(service, monitor);
    this.outages.delete(service);
    return monitor;
  }

  private count(service: string, reason: OperatorProblemReason): void {
    const counts = this.failureCounts[service] ?? {};
    this.failureCounts[service] = { ...counts, [reason]: (counts[reason] ?? 0) + 1 };
  }

  private findUnservedModels(service: string): UnservedModels {
    const { models = [], dataEndpoints = [] } = this.findCatalogue() ?? {};
    const entries = [
      ...models.map(({ id, endpoints }) => ({ id, endpoints })),
      ...dataEndpoints.map(({ endpoint }) => ({ id: endpoint.model, endpoints: [endpoint] })),
    ];
    const unserved = entries.filter(
      ({ endpoints }) =>
        endpoints.some(({ upstream }) => upstream === service) &&
        endpoints.every(({ upstream }) => this.outages.has(upstream)),
    );
    return { count: unserved.length, models: unserved.slice(0, MAX_LISTED_MODELS).map(({ id }) => id) };
  }
}

/** Describes a problem as the second part of a sentence about a service. */
export function describeProblem(reason: OperatorProblemReason): string {
  return DESCRIPTIONS[reason];
}

/** The time in which a service, or one model of it, gets no requests. It doubles with each failure after a rest. */
export class Rest {
  /** The reason of the rest; undefined without one. */
  private problem: OperatorProblem | undefined;
  private until = Number.NEGATIVE_INFINITY;
  private failures = 0;
  private isProbing = false;

  /** @param now the time in milliseconds */
  constructor(private readonly now: () => number) {}

  get isOngoing(): boolean {
    return this.problem !== undefined;
  }

  /** Begins a rest after a failure. Failures during the rest, of requests that were sent before it, do not extend it. */
  begin(problem: OperatorProblem, requestedMs: number): void {
    if (this.isOngoing && this.until > this.now() && !this.isProbing) return;
    this.problem = problem;
    this.isProbing = false;
    const milliseconds = Math.min(MIN_REST_MS * 2 ** this.failures++, MAX_REST_MS);
    this.until = this.now() + Math.max(milliseconds, requestedMs);
  }

  /** Lets another request be sent, because the last one after a rest has failed for a reason that shows nothing. */
  repeatAttempt(): void {
    if (!this.isProbing) return;
    this.isProbing = false;
    this.until = this.now();
  }

  end(): void {
    this.problem = undefined;
    this.failures = 0;
    this.until = Number.NEGATIVE_INFINITY;
    this.isProbing = false;
  }

  /**
   * Call before a request. After a rest only one request may be sent until its result is known. If it is not known after
   * `PROBE_MS`, all may be sent.
   * @throws UpstreamError during a rest
   */
  requestAttempt(): void {
    const { problem } = this;
    if (problem === undefined) return;
    const remainingMs = this.until - this.now();
    if (remainingMs > 0) {
      const retryAfterSeconds = Math.ceil(remainingMs / 1_000);
      const failure = createOperatorError(MESSAGE_PROVIDER_UNAVAILABLE, problem, { retryAfterSeconds });
      throw failure.withDetails({ isUnsent: true });
    }
    if (this.isProbing) return;
    this.isProbing = true;
    this.until = this.now() + PROBE_MS;
  }
}

function formatAdvice(reason: OperatorProblemReason, { count, models }: UnservedModels): string {
  const solution = reason === 'credential' ? 'it is replaced' : 'this is solved';
  if (count === 0) return `requests fail, or are served elsewhere, until ${solution}`;
  const rest = count > models.length ? ` and ${count - models.length} more` : '';
  return `requests for ${models.join(', ')}${rest} fail with 503 until ${solution}`;
}

/** Calls a service, and records what the result shows about the operator's account. */
export async function callMonitored<T>(monitor: ServiceMonitor, call: () => Promise<T>): Promise<T> {
  try {
    const result = await call();
    monitor.recordSuccess();
    return result;
  } catch (error) {
    monitor.recordFailure(error);
    throw error;
  }
}
