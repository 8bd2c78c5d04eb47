/** The port through which the web is searched. Adapters: `libs/connectors`. */
import type { Hold } from '../../paying/payer.ts';

export interface SearchWish {
  readonly query: string;
  readonly maxResults: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly signal: AbortSignal;
}

export interface SearchResult {
  readonly url: string;
  readonly title: string;
  /** A part of the page, at most `MAX_RESULT_CHARACTERS`. */
  readonly text: string;
}

/** More of a page is not asked for: results are part of the input that the caller pays. */
export const MAX_RESULT_CHARACTERS = 2_000;

export abstract class WebSearch {
  /** @throws UpstreamFailure */
  abstract search(hold: Hold, wish: SearchWish): Promise<readonly SearchResult[]>;
}
