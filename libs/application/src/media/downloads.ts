/** Fetching what an address names that is not ours: pictures of customers, results of vendors. */

export interface DownloadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Download {
  /** Throws a `DownloadError` where it breaks off or is longer than allowed. May be read once. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** As its sender says; what it is, its content says. */
  readonly declaredType: string | undefined;
  /** As its sender says. */
  readonly declaredSize: number | undefined;
}

/**
 * What an address names cannot be had. Of a customer's address there is one message for every reason, so that nobody can
 * find out with it what there is in our network.
 */
export class DownloadError extends Error {
  override readonly name = 'DownloadError';

  constructor(
    message: string,
    /** `not_found`: its sender has it no more (404, 410). `rejected`: it is not fetched at all. `failed`: it may be tried again. */
    readonly reason: 'rejected' | 'not_found' | 'failed' | 'too_large',
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export abstract class Downloader {
  /**
   * What a customer's http(s) address names. It never leads to private, loopback, link-local or metadata addresses, also
   * not by a redirect, and the connection goes to the address that was checked.
   * @throws DownloadError
   */
  abstract fetchCustomerUrl(url: string, limits: DownloadLimits): Promise<Download>;
  /**
   * A file that a vendor has made. It may also be at the vendor's own address, as it is configured.
   * @param headers sent to the vendor's own address only
   * @throws DownloadError
   */
  abstract fetchProviderFile(
    upstream: string,
    file: { readonly url: string; readonly headers?: Readonly<Record<string, string>> },
    limits: DownloadLimits,
  ): Promise<Download>;
}
