import { Agent, request } from 'undici';
import {
  type Hold,
  MAX_RESULT_CHARACTERS,
  type SearchResult,
  type SearchWish,
  UpstreamFailure,
  WebSearch,
} from '#application';
import { refusal } from '../chat/endpoint.ts';

export interface ExaOptions {
  /** Address without a path. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly connectTimeoutMs: number;
  readonly timeoutMs: number;
}

/** Exa's search: https://docs.exa.ai/reference/search */
export class ExaSearch extends WebSearch {
  private readonly url: string;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly dispatcher: Agent;

  constructor({ baseUrl, apiKey, connectTimeoutMs, timeoutMs }: ExaOptions) {
    super();
    this.url = `${baseUrl}/search`;
    this.headers = { 'content-type': 'application/json', 'x-api-key': apiKey };
    this.dispatcher = new Agent({
      connect: { timeout: connectTimeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  async search(_hold: Hold, { query, maxResults, includeDomains, excludeDomains, signal }: SearchWish) {
    const body = JSON.stringify({
      query,
      type: 'auto',
      numResults: maxResults,
      ...(includeDomains.length > 0 ? { includeDomains } : {}),
      ...(excludeDomains.length > 0 ? { excludeDomains } : {}),
      contents: { text: { maxCharacters: MAX_RESULT_CHARACTERS } },
    });
    const { headers, dispatcher } = this;
    try {
      const response = await request(this.url, { method: 'POST', headers, body, signal, dispatcher });
      const text = await response.body.text();
      if (response.statusCode !== 200) throw refusal(response.statusCode, response.headers, '');
      return resultsIn(JSON.parse(text)).slice(0, maxResults);
    } catch (error) {
      throw failureFrom(error, signal);
    }
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}

function resultsIn(answer: unknown): readonly SearchResult[] {
  const { results } = (answer ?? {}) as { results?: unknown };
  if (!Array.isArray(results)) throw new UpstreamFailure('upstream_error', 'The web search sent no results');
  return results
    .filter(({ url }) => typeof url === 'string')
    .map(({ url, title, text }) => ({
      url,
      title: typeof title === 'string' && title !== '' ? title : url,
      text: typeof text === 'string' ? text.slice(0, MAX_RESULT_CHARACTERS) : '',
    }));
}

/** A search that is refused is our affair: the caller's words are not at fault. */
function failureFrom(error: unknown, signal: AbortSignal): UpstreamFailure {
  if (error instanceof UpstreamFailure) {
    if (error.code !== 'invalid_request') return error;
    return new UpstreamFailure('upstream_error', 'The web search refused the request', { cause: error });
  }
  if (signal.aborted && signal.reason instanceof UpstreamFailure) return signal.reason;
  return new UpstreamFailure('upstream_unavailable', 'The web search cannot be reached', { cause: error });
}
