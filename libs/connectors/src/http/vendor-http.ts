/** The connections to one vendor: all that it offers is had over them. */
import { Agent } from 'undici';
import { UpstreamFailure } from '#application';
import { HttpEndpoint, type HttpEndpointOptions } from './http-endpoint.ts';
import { type VendorAnswer, type VendorRequest, vendorRequest } from './vendor-request.ts';

/** At most, where a vendor is asked once a request is there. */
const CONNECTIONS = 1_024;

export interface Timeouts {
  readonly connectTimeoutMs: number;
  /** Longest silence between two pieces. */
  readonly idleTimeoutMs: number;
}

export class VendorHttp {
  private readonly dispatcher: Agent;

  /**
   * @param baseUrl the vendor's address, to which paths are added
   * @param connections at most; null for as many as there are requests: those that come to it while they are still being sent
   * could take all others' place for nothing
   */
  constructor(
    readonly baseUrl: string,
    private readonly timeouts: Timeouts,
    connections: number | null = CONNECTIONS,
  ) {
    this.dispatcher = new Agent({
      connections,
      connect: { timeout: timeouts.connectTimeoutMs },
      headersTimeout: timeouts.idleTimeoutMs,
      bodyTimeout: timeouts.idleTimeoutMs,
    });
  }

  /** @param path begins with a slash */
  endpoint(path: string, options: HttpEndpointOptions): HttpEndpoint {
    const { idleTimeoutMs } = this.timeouts;
    return new HttpEndpoint(`${this.baseUrl}${path}`, this.dispatcher, { idleTimeoutMs, ...options });
  }

  /**
   * One request of any kind.
   * @param path begins with a slash, or is a whole address that the vendor has told and that begins with its own
   * @throws UpstreamFailure
   */
  request(path: string, options: VendorRequest): Promise<VendorAnswer> {
    const url = path.startsWith('/') ? `${this.baseUrl}${path}` : path;
    if (new URL(url).origin !== new URL(this.baseUrl).origin)
      throw new UpstreamFailure('upstream_error', 'The upstream named an address that is not its own');
    return vendorRequest(url, this.dispatcher, options);
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}
