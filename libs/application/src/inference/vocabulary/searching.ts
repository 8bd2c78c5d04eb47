/** Searches of the web while an answer is made, whoever makes them. */

/** What a search has come to so far: told once when it begins, and once when it ends. */
export interface SearchNote {
  /** Which search of the answer it is, from 0. */
  readonly at: number;
  readonly query: string;
  readonly state: 'searching' | 'completed' | 'failed';
}

/** What an upstream is told of the searches that it may make by itself. */
export interface NativeSearch {
  readonly maxUses: number;
  /** It must search before it answers. */
  readonly first: boolean;
  /** One of the two is empty. */
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
}
