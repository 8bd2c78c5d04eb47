/** Searches of the web during an answer, by the gateway or by the vendor. */

/** The state of a search: reported once when it starts, and once when it ends. */
export interface SearchNote {
  /** Which search of the answer it is, from 0. */
  readonly at: number;
  readonly query: string;
  readonly state: 'searching' | 'completed' | 'failed';
}

/** The searches that an upstream may make by itself. */
export interface NativeSearch {
  readonly maxUses: number;
  /** It must search before it answers. */
  readonly first: boolean;
  /** One of the two is empty. */
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
}
