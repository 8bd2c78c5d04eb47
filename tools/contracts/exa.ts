/** Exa's search, by its OpenAPI document (https://github.com/exa-labs/openapi-spec, commit 57d9178 of 2026-04-03). */

export interface ExaSearchRequest {
  query: string;
  additionalQueries?: string[];
  type?: 'neural' | 'fast' | 'auto' | 'deep' | 'deep-reasoning' | 'instant';
  outputSchema?: Record<string, unknown>;
  category?: string;
  userLocation?: string;
  numResults?: number;
  includeDomains?: string[];
  excludeDomains?: string[];
  startCrawlDate?: string;
  endCrawlDate?: string;
  startPublishedDate?: string;
  endPublishedDate?: string;
  includeText?: string[];
  excludeText?: string[];
  moderation?: boolean;
  contents?: {
    text?: boolean | { maxCharacters?: number; includeHtmlTags?: boolean; verbosity?: 'compact' | 'standard' | 'full' };
    highlights?: boolean | { maxCharacters?: number; query?: string };
    summary?: { query?: string; schema?: Record<string, unknown> };
    livecrawlTimeout?: number;
    maxAgeHours?: number;
    subpages?: number;
    subpageTarget?: string | string[];
    extras?: { links?: number; imageLinks?: number };
  };
}

interface Result {
  id: string;
  url: string;
  title?: string | null;
  publishedDate?: string | null;
  author?: string | null;
  score?: number | null;
  image?: string;
  favicon?: string;
  text?: string;
  highlights?: string[];
  highlightScores?: number[];
  summary?: string;
}

export interface ExaSearchResponse {
  requestId: string;
  results: Result[];
  searchType?: string;
  resolvedSearchType?: string;
  context?: string;
  costDollars?: {
    total: number;
    breakDown?: { search?: number; contents?: number; breakdown?: Record<string, number> }[];
    perRequestPrices?: Record<string, number>;
    perPagePrices?: Record<string, number>;
  };
}

export interface ExaError {
  requestId?: string;
  error: string;
  tag?: string;
}
