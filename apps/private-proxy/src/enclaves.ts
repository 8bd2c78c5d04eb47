/** The enclaves that were attested, so that not every request begins with it. */
import type { Log } from '#foundation/program';
import {
  AttestationError,
  type AttestationVerifier,
  type VerifiedEnclave,
} from './attestation/attestation-verifier.ts';
import type { GatewayClient, PrivateModel } from './gateway-client.ts';
import { PRIVATE_MODEL_PREFIX } from './gateway-client.ts';
import { ProxyError } from './proxy-error.ts';

/** A key that was attested is used for so long without a new look: releases are revoked, and processors' firmware turns out to be unsafe. */
const ATTESTATION_TTL_MS = 60 * 60_000;
/** Names come from callers: no more are remembered. */
const MAX_CACHED_ENCLAVES = 100;
const MODEL_LIST_TTL_MS = 60_000;
/** A look at all of them that found something wrong is repeated at most so often. */
const ATTEST_ALL_INTERVAL_MS = 10_000;

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
  private readonly runningAttestations = new Map<string, Promise<VerifiedEnclave>>();
  private modelList: { readonly models: readonly PrivateModel[]; readonly at: number } | undefined;
  private modelListLoad: Promise<readonly PrivateModel[]> | undefined;
  private attestationRun: { readonly done: Promise<void>; readonly at: number } | undefined;

  constructor(
    private readonly gateway: GatewayClient,
    private readonly verifier: AttestationVerifier,
    private readonly log: Log,
  ) {}

  /**
   * The enclave of a model, which was attested not long ago.
   * @param model without the prefix
   * @param excludedEnclave that has turned out to have another key by now
   * @throws ProxyError 502 when it is not attested, and with the status of the gateway where that knows no such model
   */
  async getEnclave(model: string, excludedEnclave?: VerifiedEnclave): Promise<VerifiedEnclave> {
    const { enclave, at } = this.states.get(model) ?? { at: 0 };
    if (enclave && enclave !== excludedEnclave && isFresh(at, ATTESTATION_TTL_MS)) return enclave;
    const isRefresh = excludedEnclave !== undefined;
    const attestationKey = `${model} ${isRefresh}`;
    const running =
      this.runningAttestations.get(attestationKey) ??
      this.attest(model, isRefresh).finally(() => this.runningAttestations.delete(attestationKey));
    this.runningAttestations.set(attestationKey, running);
    return running;
  }

  /** The private models that the gateway has. @throws ProxyError */
  async listModels(): Promise<readonly PrivateModel[]> {
    if (this.modelList && isFresh(this.modelList.at, MODEL_LIST_TTL_MS)) return this.modelList.models;
    this.modelListLoad ??= this.loadModels().finally(() => {
      this.modelListLoad = undefined;
    });
    return this.modelListLoad;
  }

  /** What the gateway says of a model, or has said before: nobody waits for a newer word of it. */
  async findModel(id: string): Promise<PrivateModel | undefined> {
    const latest = this.listModels().catch(() => []);
    const models = this.modelList?.models ?? (await latest);
    return models.find((model) => model.id === id);
  }

  /** @param model without the prefix */
  getState(model: string): EnclaveState | undefined {
    return this.states.get(model);
  }

  /** Whether requests can be encrypted: at least one enclave proved what it runs, and none of a listed model has failed to since. */
  get isAttested(): boolean {
    const modelIds = this.modelList?.models.map(({ id }) => id);
    const relevantStates = [...this.states].flatMap(([model, state]) =>
      modelIds?.includes(PRIVATE_MODEL_PREFIX + model) === false ? [] : [state],
    );
    return relevantStates.length > 0 && relevantStates.every(({ enclave }) => enclave && !enclave.isSimulated);
  }

  /** Attests all that the gateway lists and that are not attested. What goes wrong is seen in their states. */
  attestAll(): Promise<void> {
    if (!this.attestationRun || !isFresh(this.attestationRun.at, ATTEST_ALL_INTERVAL_MS)) {
      this.attestationRun = { done: this.attestListedModels(), at: Date.now() };
    }
    return this.attestationRun.done;
  }

  private async loadModels(): Promise<readonly PrivateModel[]> {
    const models = await this.gateway.fetchModels();
    this.modelList = { models, at: Date.now() };
    return models;
  }

  private async attestListedModels(): Promise<void> {
    try {
      const models = (await this.listModels()).slice(0, MAX_CACHED_ENCLAVES);
      await Promise.allSettled(models.map(({ id }) => this.getEnclave(id.slice(PRIVATE_MODEL_PREFIX.length))));
    } catch (error) {
      this.log.warn(
        { code: error instanceof ProxyError ? error.code : 'error' },
        'the gateway does not list its models',
      );
    }
  }

  private async attest(model: string, isRefresh: boolean): Promise<VerifiedEnclave> {
    const id = PRIVATE_MODEL_PREFIX + model;
    const bundle = await this.loadBundle(model, isRefresh);
    try {
      const enclave = await this.verifier.verify(bundle);
      this.saveState(model, { enclave, at: Date.now() });
      if (enclave.isSimulated) this.log.warn({ model: id }, 'the enclave is simulated: it proves nothing');
      else this.log.info({ model: id, ...enclave.evidence }, 'the enclave is attested');
      return enclave;
    } catch (error) {
      if (!(error instanceof AttestationError)) throw error;
      this.saveState(model, { reason: error.reason, at: Date.now() });
      this.log.error({ model: id, reason: error.reason }, 'the enclave is not attested: nothing is sent to it');
      throw new ProxyError(502, `Nothing was sent: ${error.message}`, { code: 'not_attested', isFinal: true });
    }
  }

  private async loadBundle(model: string, isRefresh: boolean): Promise<unknown> {
    try {
      return await this.gateway.fetchBundle(model, isRefresh);
    } catch (error) {
      // Whatever callers ask for is not known for it.
      if (!(error instanceof ProxyError && error.status === 404)) {
        this.saveState(model, { reason: 'the gateway does not show what proves it', at: Date.now() });
      }
      throw error;
    }
  }

  private saveState(model: string, state: EnclaveState): void {
    this.states.delete(model);
    this.states.set(model, state);
    const [oldest] = this.states.keys();
    if (this.states.size > MAX_CACHED_ENCLAVES) this.states.delete(oldest as string);
  }
}

/** Also where the clock was set back since. */
function isFresh(at: number, ttlMs: number): boolean {
  const age = Date.now() - at;
  return age >= 0 && age < ttlMs;
}
