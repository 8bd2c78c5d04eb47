/** Downloads from URLs of third parties: images of customers, results of providers. */

export interface DownloadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Download {
  /** Can be read once; throws a `DownloadError` if the download is interrupted or too large. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** As the server declares it; the content decides what the file is. */
  readonly declaredType: string | undefined;
  /** As the server declares it. */
  readonly declaredSize: number | undefined;
}

/**
 * A URL could not be downloaded, or a data URI could not be decoded. For a customer's http(s) URL the message is
 * the same for all reasons, so that it reveals nothing about our network.
 */
export class DownloadError extends Error {
  override readonly name = 'DownloadError';

  constructor(
    message: string,
    /**
     * `not_found`: the server no longer has the file (404, 410). `rejected`: a retry would fail in the same way, or the
     * reason is not revealed. `failed`: a retry may succeed. `too_large`: the file has too many bytes.
     */
    readonly reason: 'rejected' | 'not_found' | 'failed' | 'too_large',
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export abstract class Downloader {
  /**
   * Downloads from a customer's http(s) URL. Connects to private, loopback, link-local or metadata addresses
   * only at origins that the operator allows. Elsewhere it uses the IP address that was checked.
   * @throws DownloadError
   */
  abstract fetchCustomerUrl(url: string, limits: DownloadLimits): Promise<Download>;
  /**
   * Downloads a file that a provider has generated. The configured origin of the provider may have a private address.
   * @param headers sent only to the configured origin of the provider
   * @throws DownloadError
   */
  abstract fetchProviderFile(
    upstream: string,
    file: { readonly url: string; readonly headers?: Readonly<Record<string, string>> },
    limits: DownloadLimits,
  ): Promise<Download>;
}
