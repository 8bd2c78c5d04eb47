import type { ResolveHostname } from '../../http/public-address.ts';

/** How relays are dialled. */
export interface RelayConnectOptions {
  readonly resolve: ResolveHostname;
  /** Relays that are dialled wherever they are, also without TLS. */
  readonly allowedRelays: readonly string[];
}

/** The exact address of a relay, whatever slash it ends with. */
export function isAllowedRelay(url: string, allowedRelays: readonly string[]): boolean {
  const normalize = (address: string) => new URL(address).href.replace(/\/$/, '');
  return allowedRelays.some((relay) => normalize(relay) === normalize(url));
}
