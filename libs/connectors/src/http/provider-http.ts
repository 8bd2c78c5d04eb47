/** The connections to one provider. All of its capabilities share them. */
import { Agent } from 'undici';
import { type CredentialMonitor, NO_CREDENTIAL_MONITOR, type Provider, UpstreamError } from '#application';
import { type HttpEndpointOptions, JsonHttpClient, toUpstreamErrorFromResponse } from './json-http-client.ts';
import {
  isInvoiced,
  type ProviderHttpRequest,
  type ProviderHttpResponse,
  sendProviderRequest,
} from './provider-request.ts';
import { CredentialRedactor } from './redaction.ts';

/** Default limit of connections, for requests that are complete before they are sent. */
const MAX_CONNECTIONS = 1_024;

export interface Timeouts {
  readonly connectTimeoutMs: number;
  /** Maximum time between two chunks of a response. */
  readonly idleTimeoutMs: number;
}

export interface ProviderHttpOptions {
  /**
   * Maximum number of connections; null for one per request. Requests that are sent to the provider while their clients
   * still send them need null: slow clients could otherwise block all others at no cost.
   */
  readonly connections?: number | null;
  /** Gets what the responses show about the credential. */
  readonly monitor?: CredentialMonitor;
}

export class ProviderHttp {
  private readonly dispatcher: Agent;
  private monitor: CredentialMonitor;
  private currentRedactor: CredentialRedactor;

  /**
   * @param baseUrl the provider's URL, to which paths are appended
   * @param credential masked in the text of all error responses, if there is one
   */
  constructor(
    readonly baseUrl: string,
    private readonly timeouts: Timeouts,
    private credential: string | undefined,
    { connections = MAX_CONNECTIONS, monitor = NO_CREDENTIAL_MONITOR }: ProviderHttpOptions = {},
  ) {
    this.monitor = monitor;
    this.currentRedactor = new CredentialRedactor(credential);
    this.dispatcher = new Agent({
      connections,
      connect: { timeout: timeouts.connectTimeoutMs },
      headersTimeout: timeouts.idleTimeoutMs,
      bodyTimeout: timeouts.idleTimeoutMs,
    });
  }

  /** Masks the operator's credential, which a provider may repeat in its errors. */
  get redactor(): CredentialRedactor {
    return this.currentRedactor;
  }

  /**
   * Also masks a new credential. The previous one is still masked, because its requests may still be running.
   * @param monitor gets what responses to new requests, and to those of new clients, show about the new credential
   */
  replaceCredential(credential: string | undefined, monitor: CredentialMonitor): void {
    this.currentRedactor = new CredentialRedactor(credential, this.credential);
    this.credential = credential;
    this.monitor = monitor;
  }

  /** @param path starts with a slash */
  createJsonClient(path: string, options: HttpEndpointOptions): JsonHttpClient {
    const { monitor } = this;
    const { idleTimeoutMs } = this.timeouts;
    const mapError = options.mapErrorResponse ?? toUpstreamErrorFromResponse;
    const mapErrorResponse: typeof mapError = (status, headers, text) =>
      recordFailure(monitor, mapError(status, headers, this.redactor.redactAny(text)));
    return new JsonHttpClient(`${this.baseUrl}${path}`, this.dispatcher, {
      idleTimeoutMs,
      ...options,
      mapErrorResponse,
      onAccepted: () => monitor.recordSuccess(),
    });
  }

  /**
   * Sends a request of any kind.
   * @param path starts with a slash, or is an absolute URL that the provider returned
   * @throws UpstreamError, also if the absolute URL does not have the origin of `baseUrl`
   */
  async request(path: string, options: ProviderHttpRequest): Promise<ProviderHttpResponse> {
    const url = path.startsWith('/') ? `${this.baseUrl}${path}` : path;
    if (new URL(url).origin !== new URL(this.baseUrl).origin)
      throw new UpstreamError('upstream_error', 'The provider returned a URL that is not its own');
    const { monitor } = this;
    const { mapErrorResponse: mapError } = options;
    const mapErrorResponse: typeof mapError = (status, headers, text, body) =>
      recordFailure(monitor, mapError(status, headers, this.redactor.redactAny(text), body));
    const response = await sendProviderRequest(url, this.dispatcher, { ...options, mapErrorResponse });
    // Some other requests, such as for public keys, have no credential.
    if (isInvoiced(options)) monitor.recordSuccess();
    return response;
  }

  /**
   * Creates the call that checks a new key. Only a rejection is recorded: nothing is known about the key before.
   * @param path of the provider's free GET request; undefined if it has none
   * @param options `mapErrorResponse` must not report the key as rejected if the key is only limited to other requests
   */
  createKeyCheck(
    path: string | undefined,
    options: Pick<ProviderHttpRequest, 'headers' | 'mapErrorResponse'>,
  ): Provider['checkKey'] {
    if (path === undefined) return undefined;
    return async (signal) => {
      const response = await this.request(path, { ...options, method: 'GET', signal });
      await response.bytes(0).catch(() => {}); // closes the connection
    };
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}

function recordFailure(monitor: CredentialMonitor, failure: UpstreamError): UpstreamError {
  monitor.recordFailure(failure);
  return failure;
}
