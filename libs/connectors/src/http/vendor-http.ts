/** The connections to one vendor: all that it offers is had over them. */
import { Agent } from 'undici';
import { HttpEndpoint, type HttpEndpointOptions } from './http-endpoint.ts';

const CONNECTIONS = 1_024;

export interface Timeouts {
  readonly connectTimeoutMs: number;
  /** Longest silence between two pieces. */
  readonly idleTimeoutMs: number;
}

export class VendorHttp {
  private readonly dispatcher: Agent;

  /** @param baseUrl the vendor's address, to which paths are added */
  constructor(
    private readonly baseUrl: string,
    private readonly timeouts: Timeouts,
  ) {
    this.dispatcher = new Agent({
      connections: CONNECTIONS,
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

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}
