import type { ReportedBill } from '../billing/reported-bill.ts';

/** A web search that the gateway makes during a completion. */
export interface SearchQuery {
  readonly query: string;
  readonly maxResults: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location?: SearchLocation | undefined;
  readonly signal: AbortSignal;
}

/** The approximate location of the user. The country has two letters. */
export type SearchLocation = Readonly<Partial<Record<'city' | 'region' | 'country' | 'timezone', string>>>;

export interface SearchResult {
  readonly url: string;
  readonly title: string;
  /** A part of the page, at most `MAX_RESULT_CHARACTERS`. */
  readonly text: string;
}

export interface WebSearchResponse {
  readonly results: readonly SearchResult[];
  /** The provider's id of the search, which identifies the line of its invoice. */
  readonly vendorId: string | undefined;
  readonly reportedBill?: ReportedBill;
  /** Number of results that are invoiced in addition to the search. */
  readonly extraResults?: number;
}

/** Maximum characters of a page that are requested: results are part of the input that the caller pays for. */
export const MAX_RESULT_CHARACTERS = 2_000;

/** A page that a search has found. */
export interface SearchPage extends Pick<SearchResult, 'url' | 'title'> {
  /** The content of the page, which only the provider can read. It needs it to continue the turn. */
  readonly encrypted?: string;
}

/** The state of a search. Streams report it when the search starts and when it ends. */
export interface SearchStatus {
  /** The provider's id of the search. It needs it to continue the turn. */
  readonly id?: string;
  /** Index of the search in the completion, from 0. */
  readonly at: number;
  readonly query: string;
  readonly state: 'searching' | 'completed' | 'failed';
  /** The pages of a completed search, if the provider names them. */
  readonly results?: readonly SearchPage[];
  /** The search started in an earlier response. */
  readonly isResumed?: true;
}

/** The web searches that a provider may make by itself. */
export interface NativeSearch {
  readonly maxUses: number;
  /** The model must search before it responds. */
  readonly isRequired: boolean;
  /** At least one of the two lists is empty. */
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location?: SearchLocation | undefined;
  /** No page may be fetched for the search, if the provider makes that distinction. */
  readonly isOffline?: boolean;
}
