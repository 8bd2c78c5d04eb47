/** Searches of the web during an answer, by the gateway or by the vendor, and their results. */
export interface SearchQuery {
  readonly query: string;
  readonly maxResults: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location?: SearchLocation | undefined;
  readonly signal: AbortSignal;
}

/** Where the asker is, more or less. The country has two letters. */
export type SearchLocation = Readonly<Partial<Record<'city' | 'region' | 'country' | 'timezone', string>>>;

export interface SearchResult {
  readonly url: string;
  readonly title: string;
  /** A part of the page, at most `MAX_RESULT_CHARACTERS`. */
  readonly text: string;
}

/** What a search has found. */
export interface WebSearchResponse {
  readonly results: readonly SearchResult[];
  /** What the vendor calls the search, by which a line of its invoice can be found. */
  readonly vendorId: string | undefined;
}

/** More of a page is not asked for: results are part of the input that the caller pays. */
export const MAX_RESULT_CHARACTERS = 2_000;

/** The state of a search: reported once when it starts, and once when it ends. */
export interface SearchStatus {
  /** Which search of the answer it is, from 0. */
  readonly at: number;
  readonly query: string;
  readonly state: 'searching' | 'completed' | 'failed';
  /** The pages, of one that is completed, where the vendor names them. */
  readonly results?: readonly Pick<SearchResult, 'url' | 'title'>[];
}

/** The searches that an upstream may make by itself. */
export interface NativeSearch {
  readonly maxUses: number;
  /** It must search before it answers. */
  readonly isRequired: boolean;
  /** One of the two is empty. */
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location?: SearchLocation | undefined;
  /** No page may be fetched for it, where the vendor makes a difference. */
  readonly isOffline?: boolean;
}
