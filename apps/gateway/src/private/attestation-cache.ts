/**
 * What enclaves give as the evidence of what they are, as they gave it a moment ago. Nobody here judges it: who encrypts for an
 * enclave does, and trusts nothing else that we say.
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

/** How old evidence may be. An enclave that starts anew has another key, which those see who use the old one. */
const CACHE_TTL_MS = 30_000;
/** An enclave is not asked sooner again, whoever wants it and however it failed. */
const MIN_REFRESH_INTERVAL_MS = 1_000;
const RESPONSE_TIMEOUT_MS = 10_000;

/** What came of asking, at an instant. */
type Timestamped<T> = T & { readonly at: number };

/** What is known of an enclave. */
interface EnclaveEntry {
  /** It is being asked. */
  pending?: Promise<string>;
  /** In JSON: it may be long, and is written often. */
  cached?: Timestamped<{ readonly evidence: string }>;
  failure?: Timestamped<{ readonly error: unknown }>;
}

export class AttestationCache {
  /** By the enclave: as many as the catalogue has. */
  private readonly entries = new Map<string, EnclaveEntry>();

  constructor(
    private readonly catalogues: CatalogueService,
    private readonly providers: ProviderRegistry,
    private readonly clock: Clock,
    private readonly responseTimeoutMs = RESPONSE_TIMEOUT_MS,
  ) {}

  /**
   * The evidence of the enclave that serves a model, in JSON.
   * @param name such as `private/gpt-oss-120b`; not needed where there is one private model
   * @param freshness whether it may be as old as it may be, or not older than a second
   * @throws InvalidRequestError 404 for no private model; 400 where it is open which one is meant
   * @throws UpstreamError
   */
  async loadEvidence(name: string | undefined, freshness: 'any' | 'fresh' = 'any'): Promise<string> {
    const endpoint = this.resolveEndpoint(name);
    const entry = this.entries.get(toCacheKey(endpoint)) ?? {};
    this.entries.set(toCacheKey(endpoint), entry);
    // A failure for those who want it fresh is none for all others: anybody may ask for it fresh.
    if (this.isYoungerThan(entry.cached, freshness === 'any' ? CACHE_TTL_MS : MIN_REFRESH_INTERVAL_MS))
      return entry.cached.evidence;
    if (entry.pending) return entry.pending;
    if (this.isYoungerThan(entry.failure, MIN_REFRESH_INTERVAL_MS)) throw entry.failure.error;
    entry.pending = this.refresh(endpoint, entry);
    return entry.pending;
  }

  /** The enclave of a model does not have the key any more that its evidence is about. */
  evict(name: string): void {
    const endpoint = this.catalogues.current.findModel(name)?.endpoints[0];
    if (endpoint) this.entries.delete(toCacheKey(endpoint));
  }

  /** Where it is forgotten meanwhile, nothing is kept but what those get who have waited. */
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

  /** Whether it was within the last so many milliseconds. */
  private isYoungerThan<T>(entry: Timestamped<T> | undefined, milliseconds: number): entry is Timestamped<T> {
    const age = this.clock.nowMs() - (entry?.at ?? Number.NaN);
    return age >= 0 && age < milliseconds;
  }

  /** For all who wait for it: none of them can break it off. */
  private async requestEvidence({ upstream, enclave = '' }: Endpoint): Promise<string> {
    const timeout = new AbortController();
    const onTimeout = () => timeout.abort(new UpstreamError('timeout', 'The enclave took too long'));
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
    throw new InvalidRequestError(400, 'model must say which one is meant, such as private/gpt-oss-120b', 'model');
  }
}

function serializeBundle(bundle: object): string {
  try {
    return JSON.stringify(bundle);
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The enclave gives evidence that is nested too deeply', { cause });
  }
}

function toCacheKey({ upstream, enclave = '' }: Endpoint): string {
  return `${upstream} ${enclave}`;
}
