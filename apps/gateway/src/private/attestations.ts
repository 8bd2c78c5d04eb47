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
const KEPT_MS = 30_000;
/** An enclave is not asked sooner again, whoever wants it and however it failed. */
const AGAIN_MS = 1_000;
const ANSWERED_WITHIN_MS = 10_000;

/** What came of asking, at an instant. */
type At<T> = T & { readonly at: number };

/** What is known of an enclave. */
interface Known {
  /** It is being asked. */
  asking?: Promise<string>;
  /** In JSON: it may be long, and is written often. */
  given?: At<{ readonly evidence: string }>;
  failed?: At<{ readonly why: unknown }>;
}

export class AttestationCache {
  /** By the enclave: as many as the catalogue has. */
  private readonly known = new Map<string, Known>();

  constructor(
    private readonly catalogues: CatalogueService,
    private readonly providers: ProviderRegistry,
    private readonly clock: Clock,
    private readonly answeredWithinMs = ANSWERED_WITHIN_MS,
  ) {}

  /**
   * The evidence of the enclave that serves a model, in JSON.
   * @param name such as `private/gpt-oss-120b`; not needed where there is one private model
   * @param wanted whether it may be as old as it may be, or not older than a second
   * @throws InvalidRequestError 404 for no private model; 400 where it is open which one is meant
   * @throws UpstreamError
   */
  async of(name: string | undefined, wanted: 'any' | 'fresh' = 'any'): Promise<string> {
    const endpoint = this.enclaveOf(name);
    const known = this.known.get(keyOf(endpoint)) ?? {};
    this.known.set(keyOf(endpoint), known);
    // A failure for those who want it fresh is none for all others: anybody may ask for it fresh.
    if (this.isOf(known.given, wanted === 'any' ? KEPT_MS : AGAIN_MS)) return known.given.evidence;
    if (known.asking) return known.asking;
    if (this.isOf(known.failed, AGAIN_MS)) throw known.failed.why;
    known.asking = this.ask(endpoint, known);
    return known.asking;
  }

  /** The enclave of a model does not have the key any more that its evidence is about. */
  forget(name: string): void {
    const endpoint = this.catalogues.current.findModel(name)?.endpoints[0];
    if (endpoint) this.known.delete(keyOf(endpoint));
  }

  /** Where it is forgotten meanwhile, nothing is kept but what those get who have waited. */
  private async ask(endpoint: Endpoint, known: Known): Promise<string> {
    const at = this.clock.nowMs();
    try {
      const evidence = await this.given(endpoint);
      known.given = { evidence, at };
      return evidence;
    } catch (why) {
      known.failed = { why, at: this.clock.nowMs() };
      throw why;
    } finally {
      delete known.asking;
    }
  }

  /** Whether it was within the last so many milliseconds. */
  private isOf<T>(what: At<T> | undefined, milliseconds: number): what is At<T> {
    const age = this.clock.nowMs() - (what?.at ?? Number.NaN);
    return age >= 0 && age < milliseconds;
  }

  /** For all who wait for it: none of them can break it off. */
  private async given({ upstream, enclave = '' }: Endpoint): Promise<string> {
    const patience = new AbortController();
    const late = () => patience.abort(new UpstreamError('timeout', 'The enclave took too long'));
    const timer = setTimeout(late, this.answeredWithinMs);
    try {
      return written(await this.providers.getAttestation(upstream)(enclave, patience.signal));
    } finally {
      clearTimeout(timer);
    }
  }

  private enclaveOf(name: string | undefined): Endpoint {
    const { current } = this.catalogues;
    if (name !== undefined) return resolvePrivateModel(name, current).endpoint;
    const [only, another] = current.models.filter((model) => isPrivate(model) && model.endpoints.length > 0);
    if (only && !another) return resolvePrivateModel(only.id, current).endpoint;
    throw new InvalidRequestError(400, 'model must say which one is meant, such as private/gpt-oss-120b', 'model');
  }
}

function written(bundle: object): string {
  try {
    return JSON.stringify(bundle);
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The enclave gives evidence that is nested too deeply', { cause });
  }
}

function keyOf({ upstream, enclave = '' }: Endpoint): string {
  return `${upstream} ${enclave}`;
}
