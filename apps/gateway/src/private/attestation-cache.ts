/**
 * Caches the attestation evidence of enclaves for a short time. The gateway does not verify it: a client that encrypts
 * for an enclave must verify the evidence itself and trust no other statement of the gateway.
 */
import {
  type CatalogueService,
  type Clock,
  InvalidRequestError,
  type ProviderRegistry,
  resolvePrivateModel,
  UpstreamError,
} from '#application';
import { type Endpoint, isPrivate } from '#catalogue';

/**
 * Maximum age of cached evidence. A restarted enclave has a new key. It rejects requests that are encrypted for the old
 * key, and the evidence is then evicted.
 */
const CACHE_TTL_MS = 30_000;
/**
 * Minimum time between two requests to an enclave, also for callers that need fresh evidence and after a failure. It
 * does not apply after `evict`.
 */
const MIN_REFRESH_INTERVAL_MS = 1_000;
const RESPONSE_TIMEOUT_MS = 10_000;

/** A result with its time in Unix milliseconds: the start of a successful request, or the end of a failed one. */
type Timestamped<T> = T & { readonly at: number };

interface EnclaveEntry {
  /** The request in progress, shared by all waiting callers. */
  pending?: Promise<string>;
  /** `evidence` is serialised JSON, because it may be long and is sent often. */
  cached?: Timestamped<{ readonly evidence: string }>;
  failure?: Timestamped<{ readonly error: unknown }>;
}

export class AttestationCache {
  /** By upstream and enclave. The number of entries is bounded by the enclaves of the catalogues since the start. */
  private readonly entries = new Map<string, EnclaveEntry>();

  constructor(
    private readonly catalogues: CatalogueService,
    private readonly providers: ProviderRegistry,
    private readonly clock: Clock,
    private readonly responseTimeoutMs = RESPONSE_TIMEOUT_MS,
  ) {}

  /**
   * Returns the evidence of the enclave that serves a model, as JSON.
   * @param name such as `private/gpt-oss-120b`; optional if exactly one private model is available
   * @param freshness `any` accepts cached evidence that is less than 30 s old, `fresh` less than 1 s; both accept the
   * evidence of a request in progress
   * @throws InvalidRequestError 404 if no private model with this name is available; 400 if a needed `name` is missing
   * @throws UpstreamError if the enclave returns no usable evidence in time, or failed less than 1 s ago
   */
  async loadEvidence(name: string | undefined, freshness: 'any' | 'fresh' = 'any'): Promise<string> {
    const endpoint = this.resolveEndpoint(name);
    const entry = this.entries.get(toCacheKey(endpoint)) ?? {};
    this.entries.set(toCacheKey(endpoint), entry);
    // The cache comes first: anyone may request fresh evidence, and a failure to get it must not affect other callers.
    if (this.isYoungerThan(entry.cached, freshness === 'any' ? CACHE_TTL_MS : MIN_REFRESH_INTERVAL_MS))
      return entry.cached.evidence;
    if (entry.pending) return entry.pending;
    if (this.isYoungerThan(entry.failure, MIN_REFRESH_INTERVAL_MS)) throw entry.failure.error;
    entry.pending = this.refresh(endpoint, entry);
    return entry.pending;
  }

  /** Removes the evidence of a model's enclave. Called after the enclave has rejected the key in this evidence. */
  evict(name: string): void {
    const endpoint = this.catalogues.current.findModel(name)?.endpoints[0];
    if (endpoint) this.entries.delete(toCacheKey(endpoint));
  }

  /** If the entry is evicted during the request, the waiting callers get the result, but it is not cached. */
  private async refresh(endpoint: Endpoint, entry: EnclaveEntry): Promise<string> {
    const at = this.clock.nowMs();
    try {
      const evidence = await this.requestEvidence(endpoint);
      entry.cached = { evidence, at };
      return evidence;
    } catch (error) {
      entry.failure = { error, at: this.clock.nowMs() };
      throw error;
    } finally {
      delete entry.pending;
    }
  }

  /** Checks whether the entry exists and is younger than `milliseconds`. An entry from the future counts as too old. */
  private isYoungerThan<T>(entry: Timestamped<T> | undefined, milliseconds: number): entry is Timestamped<T> {
    const age = this.clock.nowMs() - (entry?.at ?? Number.NaN);
    return age >= 0 && age < milliseconds;
  }

  /** All waiting callers share the request, so only its timeout aborts it, and not the disconnect of a caller. */
  private async requestEvidence({ upstream, enclave = '' }: Endpoint): Promise<string> {
    const timeout = new AbortController();
    const onTimeout = () => timeout.abort(new UpstreamError('timeout', 'The enclave took too long to respond'));
    const timer = setTimeout(onTimeout, this.responseTimeoutMs);
    try {
      return serializeBundle(await this.providers.getAttestation(upstream)(enclave, timeout.signal));
    } finally {
      clearTimeout(timer);
    }
  }

  private resolveEndpoint(name: string | undefined): Endpoint {
    const { current } = this.catalogues;
    if (name !== undefined) return resolvePrivateModel(name, current).endpoint;
    const [only, another] = current.models.filter((model) => isPrivate(model) && model.endpoints.length > 0);
    if (only && !another) return resolvePrivateModel(only.id, current).endpoint;
    throw new InvalidRequestError(
      400,
      'model must be the id of a private model, such as private/gpt-oss-120b',
      'model',
    );
  }
}

function serializeBundle(bundle: object): string {
  try {
    return JSON.stringify(bundle);
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The enclave returned evidence that is nested too deeply', { cause });
  }
}

function toCacheKey({ upstream, enclave = '' }: Endpoint): string {
  return `${upstream} ${enclave}`;
}
