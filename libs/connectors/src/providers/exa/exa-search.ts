import {
  MAX_RESULT_CHARACTERS,
  type SearchQuery,
  type SearchResult,
  UpstreamError,
  type WebSearchResponse,
} from '#application';
import { allowAny, allowFields } from '../../http/field-filter.ts';
import type { JsonHttpClient } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';

/** A search takes one or two seconds, and the completion waits for it. */
const TIMEOUT_MS = 15_000;

/** Results that the price of a search includes: https://exa.ai/docs/reference/pricing */
const INCLUDED_RESULTS = 10;

/** Other options (summaries, highlights, subpages, live crawling) are billed additionally. */
export const searchRequestFilter = allowFields({
  query: allowAny,
  type: allowAny,
  numResults: allowAny,
  includeDomains: allowAny,
  excludeDomains: allowAny,
  userLocation: allowAny,
  contents: allowFields({ text: allowAny }),
});

/** Exa's search: https://docs.exa.ai/reference/search */
export class ExaSearch {
  constructor(
    private readonly endpoint: JsonHttpClient,
    private readonly billFormat: BillFormat = {},
    private readonly timeoutMs = TIMEOUT_MS,
  ) {}

  async search({
    query,
    maxResults,
    includeDomains,
    excludeDomains,
    location,
    signal,
  }: SearchQuery): Promise<WebSearchResponse> {
    const body = {
      query,
      type: 'auto',
      numResults: maxResults,
      ...(includeDomains.length > 0 ? { includeDomains } : {}),
      ...(excludeDomains.length > 0 ? { excludeDomains } : {}),
      ...(location?.country === undefined ? {} : { userLocation: location.country }),
      contents: { text: { maxCharacters: MAX_RESULT_CHARACTERS } },
    };
    const timeoutSignal = AbortSignal.any([signal, AbortSignal.timeout(this.timeoutMs)]);
    const text = await this.endpoint.post(body, timeoutSignal).catch((failure: UpstreamError) => {
      throw toSearchError(failure);
    });
    const response = parseResponse(text);
    return {
      results: toResults(response).slice(0, maxResults),
      vendorId: parseProviderRequestId({ id: response.requestId }),
      extraResults: Math.max(0, response.results.length - INCLUDED_RESULTS),
      reportedBill: parseReportedBill(response, this.billFormat),
    };
  }
}

interface ExaResponse {
  readonly requestId?: unknown;
  readonly results: readonly { readonly url?: unknown; readonly title?: unknown; readonly text?: unknown }[];
}

function parseResponse(text: string): ExaResponse {
  let response: Partial<ExaResponse> | null = null;
  try {
    response = JSON.parse(text);
  } catch {} // reported below, like any other unexpected response
  if (Array.isArray(response?.results)) return response as ExaResponse;
  throw new UpstreamError('upstream_error', 'The web search sent an invalid response', {
    vendorId: parseProviderRequestId({ id: response?.requestId }),
  });
}

function toResults({ results }: ExaResponse): readonly SearchResult[] {
  return results
    .filter((result): result is { url: string; title?: unknown; text?: unknown } => typeof result?.url === 'string')
    .map(({ url, title, text }) => ({
      url,
      title: typeof title === 'string' && title !== '' ? title : url,
      text: typeof text === 'string' ? text.slice(0, MAX_RESULT_CHARACTERS) : '',
    }));
}

/** A rejected search is an error of the gateway, which wrote the request, and not of the caller. */
function toSearchError(failure: UpstreamError): UpstreamError {
  const { code, status } = failure;
  if (code === 'invalid_request') {
    return new UpstreamError('upstream_error', 'The web search rejected the request', { cause: failure });
  }
  if (code !== 'upstream_unavailable' || status !== undefined) return failure;
  return new UpstreamError(code, 'The web search cannot be reached', { cause: failure });
}
