/** The enclaves that were attested, so that not every request begins with it. */
import type { Log } from '#foundation/program';
import {
  AttestationError,
  type AttestationVerifier,
  type VerifiedEnclave,
} from './attestation/attestation-verifier.ts';
import type { GatewayClient, PrivateModel } from './gateway.ts';
import { PREFIX } from './gateway.ts';
import { ProxyError } from './proxy-error.ts';

/** A key that was attested is used for so long without a new look: releases are revoked, and processors' firmware turns out to be unsafe. */
const KEPT_MS = 60 * 60_000;
/** Names come from callers: no more are remembered. */
const MOST_KEPT = 100;
const LIST_KEPT_MS = 60_000;
/** A look at all of them that found something wrong is repeated at most so often. */
const LOOK_AGAIN_MS = 10_000;

/** What is known of a model's enclave. */
export interface EnclaveState {
  readonly enclave?: VerifiedEnclave;
  /** Why it is not attested. */
  readonly reason?: string;
  /** Unix milliseconds. */
  readonly at: number;
}

export class Enclaves {
  private readonly states = new Map<string, EnclaveState>();
  private readonly running = new Map<string, Promise<VerifiedEnclave>>();
  private list: { readonly models: readonly PrivateModel[]; readonly at: number } | undefined;
  private listing: Promise<readonly PrivateModel[]> | undefined;
  private looking: { readonly done: Promise<void>; readonly at: number } | undefined;

  constructor(
    private readonly gateway: GatewayClient,
    private readonly verifier: AttestationVerifier,
    private readonly log: Log,
  ) {}

  /**
   * The enclave of a model, which was attested not long ago.
   * @param model without the prefix
   * @param notThis that has turned out to have another key by now
   * @throws ProxyError 502 when it is not attested, and with the status of the gateway where that knows no such model
   */
  async attested(model: string, notThis?: VerifiedEnclave): Promise<VerifiedEnclave> {
    const { enclave, at } = this.states.get(model) ?? { at: 0 };
    if (enclave && enclave !== notThis && isFresh(at, KEPT_MS)) return enclave;
    const isAnew = notThis !== undefined;
    const look = `${model} ${isAnew}`;
    const running = this.running.get(look) ?? this.attest(model, isAnew).finally(() => this.running.delete(look));
    this.running.set(look, running);
    return running;
  }

  /** The private models that the gateway has. @throws ProxyError */
  async models(): Promise<readonly PrivateModel[]> {
    if (this.list && isFresh(this.list.at, LIST_KEPT_MS)) return this.list.models;
    this.listing ??= this.listed().finally(() => {
      this.listing = undefined;
    });
    return this.listing;
  }

  /** What the gateway says of a model, or has said before: nobody waits for a newer word of it. */
  async hint(id: string): Promise<PrivateModel | undefined> {
    const latest = this.models().catch(() => []);
    const models = this.list?.models ?? (await latest);
    return models.find((each) => each.id === id);
  }

  /** @param model without the prefix */
  state(model: string): EnclaveState | undefined {
    return this.states.get(model);
  }

  /** Whether requests can be encrypted: at least one enclave proved what it runs, and none of a listed model has failed to since. */
  get proven(): boolean {
    const listed = this.list?.models.map(({ id }) => id);
    const known = [...this.states].flatMap(([model, state]) =>
      listed?.includes(PREFIX + model) === false ? [] : [state],
    );
    return known.length > 0 && known.every(({ enclave }) => enclave && !enclave.simulated);
  }

  /** Attests all that the gateway lists and that are not attested. What goes wrong is seen in their states. */
  look(): Promise<void> {
    if (!this.looking || !isFresh(this.looking.at, LOOK_AGAIN_MS)) {
      this.looking = { done: this.lookAtAll(), at: Date.now() };
    }
    return this.looking.done;
  }

  private async listed(): Promise<readonly PrivateModel[]> {
    const models = await this.gateway.models();
    this.list = { models, at: Date.now() };
    return models;
  }

  private async lookAtAll(): Promise<void> {
    try {
      const models = (await this.models()).slice(0, MOST_KEPT);
      await Promise.allSettled(models.map(({ id }) => this.attested(id.slice(PREFIX.length))));
    } catch (error) {
      this.log.warn(
        { code: error instanceof ProxyError ? error.code : 'error' },
        'the gateway does not list its models',
      );
    }
  }

  private async attest(model: string, isAnew: boolean): Promise<VerifiedEnclave> {
    const id = PREFIX + model;
    const bundle = await this.shownBy(model, isAnew);
    try {
      const enclave = await this.verifier.verify(bundle);
      this.remember(model, { enclave, at: Date.now() });
      if (enclave.simulated) this.log.warn({ model: id }, 'the enclave is simulated: it proves nothing');
      else this.log.info({ model: id, ...enclave.evidence }, 'the enclave is attested');
      return enclave;
    } catch (error) {
      if (!(error instanceof AttestationError)) throw error;
      this.remember(model, { reason: error.reason, at: Date.now() });
      this.log.error({ model: id, reason: error.reason }, 'the enclave is not attested: nothing is sent to it');
      throw new ProxyError(502, `Nothing was sent: ${error.message}`, { code: 'not_attested', final: true });
    }
  }

  private async shownBy(model: string, isAnew: boolean): Promise<unknown> {
    try {
      return await this.gateway.bundle(model, isAnew);
    } catch (error) {
      // Whatever callers ask for is not known for it.
      if (!(error instanceof ProxyError && error.status === 404)) {
        this.remember(model, { reason: 'the gateway does not show what proves it', at: Date.now() });
      }
      throw error;
    }
  }

  private remember(model: string, state: EnclaveState): void {
    this.states.delete(model);
    this.states.set(model, state);
    const [oldest] = this.states.keys();
    if (this.states.size > MOST_KEPT) this.states.delete(oldest as string);
  }
}

/** Also where the clock was set back since. */
function isFresh(at: number, forMs: number): boolean {
  const age = Date.now() - at;
  return age >= 0 && age < forMs;
}
