/** The connections to one provider. All of its capabilities share them. */
import { Agent } from 'undici';
import { UpstreamError } from '#application';
import { type HttpEndpointOptions, JsonHttpClient, toUpstreamErrorFromResponse } from './json-http-client.ts';
import { type ProviderHttpRequest, type ProviderHttpResponse, sendProviderRequest } from './provider-request.ts';
import { CredentialRedactor } from './redaction.ts';

/** Default limit of connections, for requests that are complete before they are sent. */
const MAX_CONNECTIONS = 1_024;

export interface Timeouts {
  readonly connectTimeoutMs: number;
  /** Maximum time between two chunks of a response. */
  readonly idleTimeoutMs: number;
}

export class ProviderHttp {
  private readonly dispatcher: Agent;
  /** Masks the operator's credential, which a provider may repeat in its errors. */
  readonly redactor: CredentialRedactor;

  /**
   * @param baseUrl the provider's URL, to which paths are appended
   * @param credential masked in the text of all error responses
   * @param connections maximum number of connections; null for one per request. Requests that are sent to the provider
   * while their clients still send them need null: slow clients could otherwise block all others at no cost.
   */
  constructor(
    readonly baseUrl: string,
    private readonly timeouts: Timeouts,
    credential: string,
    connections: number | null = MAX_CONNECTIONS,
  ) {
    this.redactor = new CredentialRedactor(credential);
    this.dispatcher = new Agent({
      connections,
      connect: { timeout: timeouts.connectTimeoutMs },
      headersTimeout: timeouts.idleTimeoutMs,
      bodyTimeout: timeouts.idleTimeoutMs,
    });
  }

  /** @param path starts with a slash */
  createJsonClient(path: string, options: HttpEndpointOptions): JsonHttpClient {
    const { idleTimeoutMs } = this.timeouts;
    const mapError = options.mapErrorResponse ?? toUpstreamErrorFromResponse;
    const mapErrorResponse: typeof mapError = (status, headers, text) =>
      mapError(status, headers, this.redactor.redactAny(text));
    return new JsonHttpClient(`${this.baseUrl}${path}`, this.dispatcher, {
      idleTimeoutMs,
      ...options,
      mapErrorResponse,
    });
  }

  /**
   * Sends a request of any kind.
   * @param path starts with a slash, or is an absolute URL that the provider returned
   * @throws UpstreamError, also if the absolute URL does not have the origin of `baseUrl`
   */
  request(path: string, options: ProviderHttpRequest): Promise<ProviderHttpResponse> {
    const url = path.startsWith('/') ? `${this.baseUrl}${path}` : path;
    if (new URL(url).origin !== new URL(this.baseUrl).origin)
      throw new UpstreamError('upstream_error', 'The provider returned a URL that is not its own');
    const { mapErrorResponse: mapError } = options;
    const mapErrorResponse: typeof mapError = (status, headers, text, body) =>
      mapError(status, headers, this.redactor.redactAny(text), body);
    return sendProviderRequest(url, this.dispatcher, { ...options, mapErrorResponse });
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}
