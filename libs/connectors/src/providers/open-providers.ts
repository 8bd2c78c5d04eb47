/** The one registry of vendors: each has the code of its protocol, its address and its credential. */
import {
  type Capability,
  type Hold,
  type Provider,
  type ProviderAvailability,
  ProviderRegistry,
  UpstreamError,
} from '#application';
import { ProviderHttp, type Timeouts } from '../http/provider-http.ts';
import { anthropic } from './anthropic/index.ts';
import { data } from './data/index.ts';
import { deepgram } from './deepgram/index.ts';
import { ehbp } from './ehbp/index.ts';
import { elevenLabs } from './elevenlabs/index.ts';
import { exa } from './exa/index.ts';
import { fal } from './fal/index.ts';
import { google } from './google/index.ts';
import { openAi } from './openai/index.ts';
import type { CreateProvider, ProviderConfig } from './provider.ts';

/** What each protocol can do. A vendor whose protocol is not among them is listed, and can do nothing yet. */
const PROTOCOLS: Readonly<Record<string, CreateProvider>> = {
  openai: openAi,
  anthropic,
  exa,
  fal,
  google,
  deepgram,
  elevenlabs: elevenLabs,
  data,
  ehbp,
};

const NO_CREDENTIAL = 'has no credential here';

/** Where a vendor is reached, and with what. */
export interface ProviderConnection {
  readonly baseUrl: string;
  readonly credential: string;
}

export interface ProviderSettings extends Timeouts {
  /** By the slugs of vendors; those that are missing have no credential here. */
  readonly providers: ReadonlyMap<string, ProviderConnection>;
}

/** Opens all vendors that can be reached; nothing is connected before it is asked. */
export function createProviders(vendors: readonly ProviderConfig[], settings: ProviderSettings): ConnectedProviders {
  const opened = vendors.map((vendor) => {
    const { baseUrl, credential } = settings.providers.get(vendor.slug) ?? { ...vendor, credential: '' };
    const connections = vendor.protocol === 'ehbp' ? null : undefined;
    const http = new ProviderHttp(baseUrl, settings, credential, connections);
    const provider = PROTOCOLS[vendor.protocol]?.({ http, credential }, vendor) ?? { close: () => http.close() };
    return [vendor.slug, provider] as const;
  });
  return new ConnectedProviders(new Map(opened), new Set(settings.providers.keys()));
}

export class ConnectedProviders extends ProviderRegistry implements ProviderAvailability {
  constructor(
    private readonly providers: ReadonlyMap<string, Provider>,
    private readonly reached: ReadonlySet<string>,
  ) {
    super();
  }

  get<C extends Capability>(_hold: Hold, upstream: string, capability: C): NonNullable<Provider[C]> {
    return this.offer(upstream, capability);
  }

  getAttestation(upstream: string): NonNullable<Provider['attestation']> {
    return this.offer(upstream, 'attestation');
  }

  supports(upstream: string, capability: Capability): boolean {
    return this.providers.get(upstream)?.[capability] !== undefined;
  }

  findUnavailableReason(upstream: string): string | undefined {
    return this.reached.has(upstream) ? undefined : NO_CREDENTIAL;
  }

  async close(): Promise<void> {
    await Promise.all([...this.providers.values()].map((provider) => provider.close()));
  }

  private offer<F extends keyof Provider>(upstream: string, capability: F): NonNullable<Provider[F]> {
    const why = this.findUnavailableReason(upstream);
    if (why !== undefined) throw unavailable(`"${upstream}" ${why}`);
    const able = this.providers.get(upstream)?.[capability];
    if (able) return able;
    throw unavailable(`"${upstream}" does not offer ${capability}`);
  }
}

function unavailable(message: string): UpstreamError {
  return new UpstreamError('upstream_unavailable', message, { isUnsent: true });
}
