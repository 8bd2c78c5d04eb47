/** Attests enclaves and caches the results, so that not every request starts with an attestation. */
import type { Log } from '#foundation/program';
import {
  AttestationError,
  type AttestationVerifier,
  type VerifiedEnclave,
} from './attestation/attestation-verifier.ts';
import type { GatewayClient, PrivateModel } from './gateway-client.ts';
import { PRIVATE_MODEL_PREFIX } from './gateway-client.ts';
import { ProxyError } from './proxy-error.ts';

/**
 * How long an attested key is used without another check. The certificates that authenticate the key may expire in the
 * meantime.
 */
const ATTESTATION_TTL_MS = 60 * 60_000;
/** Callers choose the model names, so the cache is limited. */
const MAX_CACHED_ENCLAVES = 100;
const MODEL_LIST_TTL_MS = 60_000;
/** Minimum time between two attestations of all models. Views of the status page and health checks start them. */
const ATTEST_ALL_INTERVAL_MS = 10_000;

/** Result of the last attestation of a model's enclave. */
export interface EnclaveState {
  readonly enclave?: VerifiedEnclave;
  /** Why the enclave is not attested. */
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
   * Returns the enclave of a model, verified within the last hour.
   * @param model without the prefix
   * @param excludedEnclave a cached enclave whose key has changed, which must not be returned again
   * @throws ProxyError 502 if the enclave is not attested, or an error of `GatewayClient.fetchBundle`
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

  /** Returns the private models of the gateway, cached for a minute. @throws ProxyError */
  async listModels(): Promise<readonly PrivateModel[]> {
    if (this.modelList && isFresh(this.modelList.at, MODEL_LIST_TTL_MS)) return this.modelList.models;
    this.modelListLoad ??= this.loadModels().finally(() => {
      this.modelListLoad = undefined;
    });
    return this.modelListLoad;
  }

  /**
   * Returns the gateway's list entry of a model. An outdated list is used at once and refreshed in the background.
   * @returns undefined if the list lacks the model, or if there is no list and it cannot be loaded
   */
  async findModel(id: string): Promise<PrivateModel | undefined> {
    // callers report that the model is unknown, or use the outdated list
    const latest = this.listModels().catch(() => []);
    const models = this.modelList?.models ?? (await latest);
    return models.find((model) => model.id === id);
  }

  /** @param model without the prefix */
  getState(model: string): EnclaveState | undefined {
    return this.states.get(model);
  }

  /**
   * Whether requests can be encrypted for attested enclaves: at least one is attested, and no enclave of a listed model
   * is simulated or failed its last attestation. Before the first list, enclaves of all models count.
   */
  get isAttested(): boolean {
    const modelIds = this.modelList?.models.map(({ id }) => id);
    const relevantStates = [...this.states].flatMap(([model, state]) =>
      modelIds?.includes(PRIVATE_MODEL_PREFIX + model) === false ? [] : [state],
    );
    return relevantStates.length > 0 && relevantStates.every(({ enclave }) => enclave && !enclave.isSimulated);
  }

  /**
   * Attests those enclaves of the first MAX_CACHED_ENCLAVES listed models that are not attested or whose attestation
   * is too old. A call within ATTEST_ALL_INTERVAL_MS after the start of a run returns that run. Never rejects. `getState`
   * has the failures, except 404s of the gateway and a failure to list the models.
   */
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
        'the models of the gateway could not be listed',
      );
    }
  }

  private async attest(model: string, isRefresh: boolean): Promise<VerifiedEnclave> {
    const id = PRIVATE_MODEL_PREFIX + model;
    const bundle = await this.loadBundle(model, isRefresh);
    try {
      const enclave = await this.verifier.verify(bundle);
      this.saveState(model, { enclave, at: Date.now() });
      if (enclave.isSimulated) this.log.warn({ model: id }, 'enclave is simulated and has no evidence');
      else this.log.info({ model: id, ...enclave.evidence }, 'enclave attested');
      return enclave;
    } catch (error) {
      if (!(error instanceof AttestationError)) throw error;
      this.saveState(model, { reason: error.reason, at: Date.now() });
      this.log.error({ model: id, reason: error.reason }, 'enclave not attested; nothing is sent to it');
      throw new ProxyError(502, `Nothing was sent: ${error.message}`, { code: 'not_attested', isFinal: true });
    }
  }

  private async loadBundle(model: string, isRefresh: boolean): Promise<unknown> {
    try {
      return await this.gateway.fetchBundle(model, isRefresh);
    } catch (error) {
      // Callers can request any name, so a model that does not exist gets no state.
      if (!(error instanceof ProxyError && error.status === 404)) {
        this.saveState(model, { reason: 'the gateway did not return its evidence', at: Date.now() });
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

/** Also returns false if `at` is in the future, because the clock was set back. */
function isFresh(at: number, ttlMs: number): boolean {
  const age = Date.now() - at;
  return age >= 0 && age < ttlMs;
}
