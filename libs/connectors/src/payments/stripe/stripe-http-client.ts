/** The way to Stripe of its own library, which would read an answer without an end until the process has no memory left. */
import type { Stripe } from 'stripe';
import { BackendHttp, type BackendResponse } from '../backend-http.ts';

type Client = NonNullable<NonNullable<ConstructorParameters<typeof Stripe>[1]>['httpClient']>;
type Response = Awaited<ReturnType<Client['makeRequest']>>;

export class StripeHttpClient implements Client {
  private readonly http: BackendHttp;

  /** @param url address of the API, of which only the host counts: the library knows the paths */
  constructor(url: string) {
    this.http = new BackendHttp('Stripe', new URL(url).origin);
  }

  getClientName(): string {
    return 'undici';
  }

  /** @throws UpstreamError, or a `TimeoutError`; the library takes both for a connection that failed */
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
    getRawResponse: () => ({}), // the library writes the id of the request into it
    toStream: () => {
      throw new Error('nothing of Stripe is read as a stream');
    },
    toJSON: async () => parseObject(text),
  };
}

/** The library writes into what it takes for an object, where nothing catches. @throws SyntaxError, which it does catch */
function parseObject(text: string): object {
  const read: unknown = JSON.parse(text);
  if (typeof read === 'object' && read !== null) return read;
  throw new SyntaxError('this is no object');
}
