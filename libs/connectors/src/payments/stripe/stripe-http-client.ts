/** HTTP client for Stripe's library. The library's own client reads responses without a size limit. */
import type { Stripe } from 'stripe';
import { BackendHttp, type BackendResponse } from '../backend-http.ts';

type Client = NonNullable<NonNullable<ConstructorParameters<typeof Stripe>[1]>['httpClient']>;
type Response = Awaited<ReturnType<Client['makeRequest']>>;

export class StripeHttpClient implements Client {
  private readonly http: BackendHttp;

  /** @param url address of the API; only its origin is used, because the library has the paths */
  constructor(url: string) {
    this.http = new BackendHttp('Stripe', new URL(url).origin);
  }

  getClientName(): string {
    return 'undici';
  }

  /** @throws UpstreamError, or a `TimeoutError`; the library treats both as a failed connection */
  async makeRequest(
    ...[, , path, method, headers, sent, , timeout]: Parameters<Client['makeRequest']>
  ): Promise<Response> {
    const definedHeaders = Object.entries(headers).filter(([, value]) => value !== undefined);
    const response = await this.http.send({
      method: method === 'POST' ? 'POST' : 'GET',
      path,
      headers: Object.fromEntries(definedHeaders.map(([name, value]) => [name, String(value)])),
      ...(sent ? { body: sent } : {}),
      signal: AbortSignal.timeout(timeout),
    });
    return toResponse(response);
  }

  close(): Promise<void> {
    return this.http.close();
  }
}

function toResponse({ status, headers, text }: BackendResponse): Response {
  return {
    getStatusCode: () => status,
    getHeaders: () => headers as ReturnType<Response['getHeaders']>,
    getRawResponse: () => ({}), // the library adds the id of the request to this object
    toStream: () => {
      throw new Error('streams of Stripe are not supported');
    },
    toJSON: async () => parseObject(text),
  };
}

/**
 * Returns only objects, because the library assigns fields to the result outside of any `try` block.
 * @throws SyntaxError, which the library catches, for other values
 */
function parseObject(text: string): object {
  const read: unknown = JSON.parse(text);
  if (typeof read === 'object' && read !== null) return read;
  throw new SyntaxError('not an object');
}
