/** Which of the operator's credentials external services reject at present, and which models cannot be served then. */
import type { Catalogue } from '#catalogue';
import { ActionRequiredError, type Runtime } from '#kernel';
import { UpstreamError } from './errors.ts';

/** What the calls to one external service show about its credential. */
export interface CredentialMonitor {
  /** Call after a response to a request with the credential. */
  recordSuccess(): void;
  /** Call after any failure. Only one with `isCredentialRejected` counts. */
  recordFailure(error: unknown): void;
}

/** Of a service without a credential. */
export const NO_CREDENTIAL_MONITOR: CredentialMonitor = { recordSuccess() {}, recordFailure() {} };

/** Limits the length of a log line and of the public health response. */
const MAX_LISTED_MODELS = 20;

/** Models and data lookups that no provider with an accepted credential serves. */
export interface UnservedModels {
  readonly count: number;
  /** The names of at most `MAX_LISTED_MODELS` of them. */
  readonly models: readonly string[];
}

type ServedCatalogue = Pick<Catalogue, 'models' | 'dataEndpoints'>;

/** The credentials that external services have rejected, as this process observed, until they accept them again. */
export class RejectedCredentials {
  private readonly monitors = new Map<string, CredentialMonitor>();
  private readonly services = new Set<string>();
  private findCatalogue: () => ServedCatalogue | undefined = () => undefined;

  /**
   * @param reportError gets each rejection once, as an `ActionRequiredError`
   * @param getVariable returns the environment variable that sets a setting: its own, or that of its file
   */
  constructor(
    private readonly reportError: Runtime['reportError'],
    private readonly getVariable = (setting: string) => setting,
  ) {}

  /** From now on, names the models of a catalogue that no longer can be served. */
  useCatalogue(catalogues: { readonly current: ServedCatalogue }): void {
    this.findCatalogue = () => catalogues.current;
  }

  /** Returns the names of the services that reject their credentials, in alphabetical order. */
  list(): readonly string[] {
    return [...this.services].sort();
  }

  /** Returns the models that cannot be served, by the service that rejects its credential. */
  listUnservedModels(): Readonly<Record<string, UnservedModels>> {
    const services = this.list().map((service) => [service, this.findUnservedModels(service)] as const);
    return Object.fromEntries(services.filter(([, { count }]) => count > 0));
  }

  /**
   * Returns the monitor of a credential. A later monitor of the same service is that of a new credential: nothing is
   * known about it yet, and late responses to the previous credential no longer count.
   * @param service unique name, such as `openai`; public, because health lists it
   * @param description what the operator reads, such as `the provider openai`
   * @param setting the setting that has the credential
   */
  createMonitor(service: string, description: string, setting: string): CredentialMonitor {
    const isCurrent = () => this.monitors.get(service) === monitor;
    const monitor: CredentialMonitor = {
      recordSuccess: () => {
        if (isCurrent()) this.services.delete(service);
      },
      recordFailure: (error) => {
        if (!isCurrent() || !(error instanceof UpstreamError && error.isCredentialRejected)) return;
        if (this.services.has(service)) return;
        this.services.add(service);
        const advice = formatAdvice(this.findUnservedModels(service));
        const problem = `${description} rejects its credential (${this.getVariable(setting)})`;
        this.reportError(problem, new ActionRequiredError(advice));
      },
    };
    this.monitors.set(service, monitor);
    this.services.delete(service);
    return monitor;
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
        endpoints.every(({ upstream }) => this.services.has(upstream)),
    );
    return { count: unserved.length, models: unserved.slice(0, MAX_LISTED_MODELS).map(({ id }) => id) };
  }
}

function formatAdvice({ count, models }: UnservedModels): string {
  if (count === 0) return 'requests fail, or are served elsewhere, until it is replaced';
  const rest = count > models.length ? ` and ${count - models.length} more` : '';
  return `requests for ${models.join(', ')}${rest} fail with 503 until it is replaced`;
}

/** Calls a service, and records what the result shows about its credential. */
export async function callMonitored<T>(monitor: CredentialMonitor, call: () => Promise<T>): Promise<T> {
  try {
    const result = await call();
    monitor.recordSuccess();
    return result;
  } catch (error) {
    monitor.recordFailure(error);
    throw error;
  }
}
