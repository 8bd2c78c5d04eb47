/** The registry of providers. Each has the code of its protocol, its base URL and its credential. */

import {
  type Capability,
  type Hold,
  OperatorProblems,
  type Provider,
  type ProviderAvailability,
  ProviderRegistry,
  type ServiceMonitor,
  UpstreamError,
} from '#application';
import { nodeTimers } from '#runtime';
import { ProviderHttp, type Timeouts } from '../http/provider-http.ts';
import { createAnthropicProvider } from './anthropic/index.ts';
import { createDataProvider } from './data/index.ts';
import { createDeepgramProvider } from './deepgram/index.ts';
import { createEhbpProvider } from './ehbp/index.ts';
import { createElevenLabsProvider } from './elevenlabs/index.ts';
import { createExaProvider } from './exa/index.ts';
import { createFalProvider } from './fal/index.ts';
import { createGoogleProvider } from './google/index.ts';
import { createOpenAiProvider } from './openai/index.ts';
import type { CreateProvider, ProviderConfig } from './provider.ts';

/** The code of each protocol. A provider whose protocol is missing here has no capabilities. */
const PROTOCOLS: Readonly<Record<string, CreateProvider>> = {
  openai: createOpenAiProvider,
  anthropic: createAnthropicProvider,
  exa: createExaProvider,
  fal: createFalProvider,
  google: createGoogleProvider,
  deepgram: createDeepgramProvider,
  elevenlabs: createElevenLabsProvider,
  data: createDataProvider,
  ehbp: createEhbpProvider,
};

export interface ProviderConnection {
  readonly baseUrl: string;
  /** Undefined for a provider that is called without a credential. */
  readonly credential: string | undefined;
  /** Whether the sandbox simulates the provider. */
  readonly isSimulated?: boolean;
}

export interface ProviderSettings extends Timeouts {
  /** By provider slug. Only configured and simulated providers are included. */
  readonly providers: ReadonlyMap<string, ProviderConnection>;
  /** Slugs of the providers that have agreed to retain no data of the operator's account. */
  readonly zdrAgreements?: readonly string[];
}

/**
 * Creates all providers. A connection is opened only when a capability is called.
 * @param configs with the prefix of the provider's settings
 * @param problems gets what the responses show about the accounts of the operator
 */
export function createProviders(
  configs: readonly (ProviderConfig & { readonly env: string })[],
  settings: ProviderSettings,
  problems = new OperatorProblems({ ...nodeTimers, reportError: () => {} }),
): ConnectedProviders {
  const entries = configs.map((config) => {
    const connection = settings.providers.get(config.slug) ?? { ...config, credential: undefined };
    const createMonitor = () =>
      problems.createMonitor(config.slug, `the provider ${config.slug}`, `${config.env}_API_KEY`);
    const http = new ProviderHttp(connection.baseUrl, settings, connection.credential, {
      monitor: createMonitor(),
      errorRules: config.errors,
      ...(config.protocol === 'ehbp' ? { connections: null } : {}),
    });
    return [config.slug, new ProviderAccess(config, { connection, http, createMonitor })] as const;
  });
  const unavailable = configs.filter(({ slug }) => !settings.providers.has(slug));
  return new ConnectedProviders(
    new Map(entries),
    new Map(unavailable.map(({ slug, env }) => [slug, `${env}_API_KEY`])),
    new Set([...settings.providers].flatMap(([slug, { isSimulated }]) => (isSimulated ? [slug] : []))),
    settings.zdrAgreements,
  );
}

/**
 * A provider with its current credential, which may be replaced while the process runs. Calls of an earlier credential
 * continue on the same connections.
 */
class ProviderAccess {
  private credential: string | undefined;
  private provider: Provider;
  private isKeyChecked = false;

  constructor(
    private readonly config: ProviderConfig,
    private readonly access: {
      /** Its credential is replaced. */
      readonly connection: ProviderConnection;
      readonly http: ProviderHttp;
      readonly createMonitor: () => ServiceMonitor;
    },
  ) {
    this.credential = access.connection.credential;
    this.provider = this.createProvider();
  }

  get current(): Provider {
    const { connection, http, createMonitor } = this.access;
    if (connection.credential !== this.credential) {
      this.credential = connection.credential;
      http.replaceCredential(this.credential, createMonitor());
      this.provider = this.createProvider();
      this.isKeyChecked = false;
    }
    return this.provider;
  }

  /** Returns the check of the current key, once for each key; undefined if the provider has no key or no check. */
  takeKeyCheck(): Provider['checkKey'] {
    const { checkKey } = this.current;
    if (this.isKeyChecked || !this.credential) return undefined;
    this.isKeyChecked = true;
    return checkKey;
  }

  private createProvider(): Provider {
    const { config, credential } = this;
    const { http } = this.access;
    return PROTOCOLS[config.protocol]?.({ http, credential }, config) ?? { close: () => http.close() };
  }
}

export class ConnectedProviders extends ProviderRegistry implements ProviderAvailability {
  constructor(
    private readonly providers: ReadonlyMap<string, ProviderAccess>,
    /** The setting that would make a provider available, by the slugs of unavailable providers. */
    private readonly missingSettings: ReadonlyMap<string, string>,
    private readonly simulated: ReadonlySet<string>,
    private readonly zdrAgreements: readonly string[] = [],
  ) {
    super();
  }

  get<C extends Capability>(_hold: Hold, upstream: string, capability: C): NonNullable<Provider[C]> {
    return this.getCapability(upstream, capability);
  }

  getAttestation(upstream: string): NonNullable<Provider['attestation']> {
    return this.getCapability(upstream, 'attestation');
  }

  supports(upstream: string, capability: Capability): boolean {
    return this.providers.get(upstream)?.current[capability] !== undefined;
  }

  findMissingSetting(upstream: string): string | undefined {
    return this.missingSettings.get(upstream);
  }

  /**
   * Checks each key that was not checked before by a free call of its provider, if there is one. `OperatorProblems`
   * gets the results.
   * @param onUnknown gets the providers that neither accepted nor rejected their keys
   */
  async checkKeys(signal: AbortSignal, onUnknown: (upstream: string, error: Error) => void): Promise<void> {
    const checks = [...this.providers].map(async ([upstream, provider]) => {
      try {
        await provider.takeKeyCheck()?.(signal);
      } catch (error) {
        if (!(error instanceof UpstreamError && error.isCredentialRejected)) onUnknown(upstream, error as Error);
      }
    });
    await Promise.all(checks);
  }

  /**
   * Returns the pages of a provider's list of models, each in the provider's format.
   * @throws UpstreamError, also if the provider has no such list
   */
  async listModels(upstream: string, signal: AbortSignal): Promise<readonly unknown[]> {
    return this.getCapability(upstream, 'listModels')(signal);
  }

  isSimulated(upstream: string): boolean {
    return this.simulated.has(upstream);
  }

  hasZdrAgreement(upstream: string): boolean {
    return this.isSimulated(upstream) || this.zdrAgreements.includes(upstream);
  }

  async close(): Promise<void> {
    await Promise.all([...this.providers.values()].map(({ current }) => current.close()));
  }

  private getCapability<F extends keyof Provider>(upstream: string, capability: F): NonNullable<Provider[F]> {
    const setting = this.findMissingSetting(upstream);
    if (setting !== undefined) throw unavailableError(`"${upstream}" is not available here: it requires ${setting}`);
    const implementation = this.providers.get(upstream)?.current[capability];
    if (implementation) return implementation;
    throw unavailableError(`"${upstream}" does not offer ${capability}`);
  }
}

function unavailableError(message: string): UpstreamError {
  return new UpstreamError('upstream_unavailable', message, { isUnsent: true });
}
