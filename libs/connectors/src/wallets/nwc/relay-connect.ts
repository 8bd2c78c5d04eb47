import type { ResolveHostname } from '../../http/public-address.ts';

export interface RelayConnectOptions {
  readonly resolve: ResolveHostname;
  /** Relays that may have private addresses and may be used without TLS. */
  readonly allowedRelays: readonly string[];
}

/** Whether the list has this address, with or without a slash at the end. */
export function isAllowedRelay(url: string, allowedRelays: readonly string[]): boolean {
  const normalize = (address: string) => new URL(address).href.replace(/\/$/, '');
  return allowedRelays.some((relay) => normalize(relay) === normalize(url));
}
