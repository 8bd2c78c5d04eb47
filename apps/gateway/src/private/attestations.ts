/**
 * What enclaves give as the evidence of what they are, as they gave it a moment ago. Nobody here judges it: who encrypts for an
 * enclave does, and trusts nothing else that we say.
 */
import {
  type Catalogues,
  type Clock,
  type Providers,
  privateModel,
  UnservableRequest,
  UpstreamFailure,
} from '#application';
import { type Endpoint, isPrivate } from '#catalogue';

/** How old evidence may be. An enclave that starts anew has another key, which those see who use the old one. */
const KEPT_MS = 30_000;
/** An enclave is not asked sooner again, whoever wants it and however it failed. */
const AGAIN_MS = 1_000;
const ANSWERED_WITHIN_MS = 10_000;

/** Evidence that was asked for, or is being. */
interface Asked {
  /** In JSON: it may be long, and is written often. */
  readonly evidence: Promise<string>;
  /** Instants up to which it is had by who wants any, and by who wants it fresh; without end while it is being asked for. */
  until: Readonly<Record<'any' | 'fresh', number>>;
}

export class Attestations {
  /** By the enclave: as many as the catalogue has. */
  private readonly asked = new Map<string, Asked>();

  constructor(
    private readonly catalogues: Catalogues,
    private readonly providers: Providers,
    private readonly clock: Clock,
    private readonly answeredWithinMs = ANSWERED_WITHIN_MS,
  ) {}

  /**
   * The evidence of the enclave that serves a model, in JSON.
   * @param name such as `private/gpt-oss-120b`; not needed where there is one private model
   * @param wanted whether it may be as old as it may be, or not older than a second
   * @throws UnservableRequest 404 for no private model; 400 where it is open which one is meant
   * @throws UpstreamFailure
   */
  async of(name: string | undefined, wanted: 'any' | 'fresh' = 'any'): Promise<string> {
    const endpoint = this.enclaveOf(name);
    const known = this.asked.get(keyOf(endpoint));
    return known && this.clock.milliseconds() < known.until[wanted] ? known.evidence : this.ask(endpoint);
  }

  /** The enclave of a model does not have the key any more that its evidence is about. */
  forget(name: string): void {
    const endpoint = this.catalogues.current.find(name)?.endpoints[0];
    if (endpoint) this.asked.delete(keyOf(endpoint));
  }

  private ask(endpoint: Endpoint): Promise<string> {
    const at = this.clock.milliseconds();
    const asked: Asked = { evidence: this.given(endpoint), until: { any: Infinity, fresh: Infinity } };
    this.asked.set(keyOf(endpoint), asked);
    const keep = () => {
      asked.until = { any: at + KEPT_MS, fresh: at + AGAIN_MS };
    };
    const pause = () => {
      const again = this.clock.milliseconds() + AGAIN_MS;
      asked.until = { any: again, fresh: again };
    };
    void asked.evidence.then(keep, pause);
    return asked.evidence;
  }

  /** For all who wait for it: none of them can break it off. */
  private async given({ upstream, enclave = '' }: Endpoint): Promise<string> {
    const patience = new AbortController();
    const late = () => patience.abort(new UpstreamFailure('timeout', 'The enclave took too long'));
    const timer = setTimeout(late, this.answeredWithinMs);
    try {
      return JSON.stringify(await this.providers.attestations(upstream)(enclave, patience.signal));
    } finally {
      clearTimeout(timer);
    }
  }

  private enclaveOf(name: string | undefined): Endpoint {
    const { current } = this.catalogues;
    if (name !== undefined) return privateModel(name, current).endpoint;
    const [only, another] = current.models.filter((model) => isPrivate(model) && model.endpoints.length > 0);
    if (only && !another) return privateModel(only.id, current).endpoint;
    throw new UnservableRequest(400, 'model must say which one is meant, such as private/gpt-oss-120b', 'model');
  }
}

function keyOf({ upstream, enclave = '' }: Endpoint): string {
  return `${upstream} ${enclave}`;
}
