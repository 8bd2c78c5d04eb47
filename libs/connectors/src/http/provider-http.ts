/** The connections to one provider. All of its capabilities share them. */
import { Agent } from 'undici';
import {
  type ErrorRuleFile,
  NO_SERVICE_MONITOR,
  type Provider,
  type ServiceMonitor,
  UpstreamError,
} from '#application';
import { type ClassifyError, createErrorClassifier, type ErrorReport, parseErrorReport } from './error-rules.ts';
import { type HttpEndpointOptions, JsonHttpClient, toUpstreamErrorFromResponse } from './json-http-client.ts';
import { readModelListPages } from './model-list-pages.ts';
import {
  isInvoiced,
  type ProviderHttpRequest,
  type ProviderHttpResponse,
  sendProviderRequest,
} from './provider-request.ts';
import { CredentialRedactor } from './redaction.ts';
import { parseRetryAfter } from './retry-after.ts';
import type { Headers } from './stream-relay.ts';

/** Default limit of connections, for requests that are complete before they are sent. */
const MAX_CONNECTIONS = 1_024;

/** Limit of a page of a list of models. OpenRouter's list, the longest, is one page of about 2 MiB. */
const MAX_MODEL_LIST_BYTES = 32 * 1024 * 1024;

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
  /** Gets what the responses show about the operator's account. */
  readonly monitor?: ServiceMonitor;
  /** What error responses mean, if their statuses and codes do not show it. */
  readonly errorRules?: readonly ErrorRuleFile[] | undefined;
}

export class ProviderHttp {
  private readonly dispatcher: Agent;
  private monitor: ServiceMonitor;
  private currentRedactor: CredentialRedactor;
  private readonly classifyError: ClassifyError;

  /**
   * @param baseUrl the provider's URL, to which paths are appended
   * @param credential masked in the text of all error responses, if there is one
   */
  constructor(
    readonly baseUrl: string,
    private readonly timeouts: Timeouts,
    private credential: string | undefined,
    { connections = MAX_CONNECTIONS, monitor = NO_SERVICE_MONITOR, errorRules }: ProviderHttpOptions = {},
  ) {
    this.classifyError = createErrorClassifier(errorRules);
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
  replaceCredential(credential: string | undefined, monitor: ServiceMonitor): void {
    this.currentRedactor = new CredentialRedactor(credential, this.credential);
    this.credential = credential;
    this.monitor = monitor;
  }

  /** @param path starts with a slash */
  createJsonClient(path: string, options: HttpEndpointOptions): JsonHttpClient {
    const { monitor } = this;
    const { idleTimeoutMs } = this.timeouts;
    const mapError = options.mapErrorResponse ?? toUpstreamErrorFromResponse;
    return new JsonHttpClient(`${this.baseUrl}${path}`, this.dispatcher, {
      idleTimeoutMs,
      ...options,
      mapErrorResponse: (status, headers, text) =>
        this.toFailure(monitor, { status, headers, text }, (redacted) => mapError(status, headers, redacted)),
      classifyError: (report) => this.classifyPart(monitor, report),
      beforeRequest: () => monitor.assertUsable(),
      onAccepted: () => monitor.recordSuccess(),
    });
  }

  /**
   * Sends a request of any kind.
   * @param path starts with a slash, or is an absolute URL that the provider returned
   * @throws UpstreamError, also if the absolute URL does not have the origin of `baseUrl`, and for an invoiced request
   *   while the provider rests because of a problem of the operator's account
   */
  async request(path: string, options: ProviderHttpRequest): Promise<ProviderHttpResponse> {
    const url = path.startsWith('/') ? `${this.baseUrl}${path}` : path;
    if (new URL(url).origin !== new URL(this.baseUrl).origin)
      throw new UpstreamError('upstream_error', 'The provider returned a URL that is not its own');
    const { monitor } = this;
    if (isInvoiced(options)) monitor.assertUsable();
    const response = await sendProviderRequest(url, this.dispatcher, {
      ...options,
      mapErrorResponse: (status, headers, text, body) =>
        this.toFailure(monitor, { status, headers, text }, (redacted) =>
          options.mapErrorResponse(status, headers, redacted, body),
        ),
    });
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

  /**
   * Creates the call that reads the provider's list of models.
   * @param path of the list's GET request; undefined if the provider has none
   */
  createModelListReader(
    path: string | undefined,
    options: Pick<ProviderHttpRequest, 'headers' | 'mapErrorResponse'>,
  ): Provider['listModels'] {
    if (path === undefined) return undefined;
    return (signal) =>
      readModelListPages(path, async (page) => {
        const response = await this.request(page, { ...options, method: 'GET', signal });
        return response.json(MAX_MODEL_LIST_BYTES);
      });
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  /** Classifies an error within a response, such as an error event of a stream. */
  private classifyPart(monitor: ServiceMonitor, { message, ...report }: ErrorReport): UpstreamError | undefined {
    const redacted = message === undefined ? undefined : this.redactor.redactText(message);
    const failure = this.classifyError({ ...report, message: redacted });
    if (failure) monitor.recordFailure(failure);
    return failure;
  }

  /** Converts an error response by the rules of the provider, or else by `mapError`, which gets the redacted text. */
  private toFailure(
    monitor: ServiceMonitor,
    { status, headers, text }: { readonly status: number; readonly headers: Headers; readonly text: string },
    mapError: (redacted: string) => UpstreamError,
  ): UpstreamError {
    const redacted = this.redactor.redactAny(text);
    const { retryAfterSeconds } = parseRetryAfter(headers);
    const mapped = mapError(redacted);
    const classified = this.classifyError({ ...parseErrorReport(redacted), status }, retryAfterSeconds);
    const failure = classified?.withDetails({ vendorId: mapped.vendorId }) ?? mapped;
    monitor.recordFailure(failure, retryAfterSeconds);
    return failure;
  }
}
