/** Exa, by its OpenAPI document (https://github.com/exa-labs/openapi-spec, commit 57d9178 of 2026-04-03). */

interface ContentOptions {
  text?: boolean | { maxCharacters?: number; includeHtmlTags?: boolean; verbosity?: 'compact' | 'standard' | 'full' };
  highlights?: boolean | { maxCharacters?: number; numSentences?: number; highlightsPerUrl?: number; query?: string };
  summary?: { query?: string; schema?: Record<string, unknown> };
  livecrawl?: 'never' | 'fallback' | 'preferred' | 'always';
  livecrawlTimeout?: number;
  maxAgeHours?: number;
  subpages?: number;
  subpageTarget?: string | string[];
  extras?: { links?: number; imageLinks?: number };
}

interface ResultOptions {
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
  contents?: ContentOptions;
}

interface ExaSearchRequest extends ResultOptions {
  query: string;
  additionalQueries?: string[];
  type?: 'neural' | 'fast' | 'auto' | 'deep' | 'deep-reasoning' | 'instant';
  outputSchema?: Record<string, unknown>;
  category?: string;
  userLocation?: string;
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

interface Billed {
  costDollars?: {
    total: number;
    breakDown?: { search?: number; contents?: number; breakdown?: Record<string, number> }[];
    perRequestPrices?: Record<string, number>;
    perPagePrices?: Record<string, number>;
  };
}

interface Results extends Billed {
  requestId: string;
  results: Result[];
  context?: string;
}

interface Status {
  id?: string;
  status?: 'success' | 'error';
  error?: { tag?: string; httpStatusCode?: number | null } | null;
}

interface ReplyRequest {
  query: string;
  stream?: boolean;
  text?: boolean;
  outputSchema?: Record<string, unknown>;
}

interface ReplyResponse extends Billed, Record<'answer', string | Record<string, unknown>> {
  /** In the SDK (https://github.com/exa-labs/exa-js, AnswerResponse), and not in the document. */
  requestId?: string;
  citations: Result[];
}

export interface ExaContracts extends Record<'answerRequest', ReplyRequest>, Record<'answerResponse', ReplyResponse> {
  searchRequest: ExaSearchRequest;
  searchResponse: Results & { searchType?: string; resolvedSearchType?: string };
  findSimilarRequest: ResultOptions & { url: string; excludeSourceDomain?: boolean };
  findSimilarResponse: Results;
  contentsRequest: ContentOptions & { urls: string[]; ids?: string[] };
  contentsResponse: Results & { statuses?: Status[] };
  error: ExaError;
}

interface ExaError {
  requestId?: string;
  error: string;
  tag?: string;
}
