import type { Resolve } from '../../http/public-address.ts';

/** How relays are dialled. */
export interface RelayConnectOptions {
  readonly resolve: Resolve;
  /** Relays that are dialled wherever they are, also without TLS. */
  readonly admitted: readonly string[];
}

/** The exact address of a relay, whatever slash it ends with. */
export function isAllowedRelay(url: string, admitted: readonly string[]): boolean {
  const plain = (each: string) => new URL(each).href.replace(/\/$/, '');
  return admitted.some((each) => plain(each) === plain(url));
}
