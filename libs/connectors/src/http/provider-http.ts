/** The connections to one vendor: all that it offers is had over them. */
import { Agent } from 'undici';
import { UpstreamError } from '#application';
import { type HttpEndpointOptions, JsonHttpClient, toUpstreamErrorFromResponse } from './json-http-client.ts';
import { type ProviderHttpRequest, type ProviderHttpResponse, sendProviderRequest } from './provider-request.ts';
import { CredentialRedactor } from './redaction.ts';

/** At most, where a vendor is asked once a request is there. */
const MAX_CONNECTIONS = 1_024;

export interface Timeouts {
  readonly connectTimeoutMs: number;
  /** Longest silence between two pieces. */
  readonly idleTimeoutMs: number;
}

export class ProviderHttp {
  private readonly dispatcher: Agent;
  /** Of our credential, which a vendor may repeat in its errors. */
  readonly redactor: CredentialRedactor;

  /**
   * @param baseUrl the vendor's address, to which paths are added
   * @param credential what no error of the vendor's is to have in it
   * @param connections at most; null for as many as there are requests: those that come to it while they are still being sent
   * could take all others' place for nothing
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

  /** @param path begins with a slash */
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
   * One request of any kind.
   * @param path begins with a slash, or is a whole address that the vendor has told and that begins with its own
   * @throws UpstreamError
   */
  request(path: string, options: ProviderHttpRequest): Promise<ProviderHttpResponse> {
    const url = path.startsWith('/') ? `${this.baseUrl}${path}` : path;
    if (new URL(url).origin !== new URL(this.baseUrl).origin)
      throw new UpstreamError('upstream_error', 'The upstream named an address that is not its own');
    const { mapErrorResponse: mapError } = options;
    const mapErrorResponse: typeof mapError = (status, headers, text, body) =>
      mapError(status, headers, this.redactor.redactAny(text), body);
    return sendProviderRequest(url, this.dispatcher, { ...options, mapErrorResponse });
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}
