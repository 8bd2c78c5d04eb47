/** The connections to one vendor: all that it offers is had over them. */
import { Agent } from 'undici';
import { HttpEndpoint, type HttpEndpointOptions } from './http-endpoint.ts';

const CONNECTIONS = 1_024;

export interface Timeouts {
  readonly connectTimeoutMs: number;
  /** Longest silence between two pieces, and before the first one of a stream. */
  readonly idleTimeoutMs: number;
}

export class VendorHttp {
  private readonly dispatcher: Agent;

  /** @param baseUrl the vendor's address, to which paths are added */
  constructor(
    private readonly baseUrl: string,
    { connectTimeoutMs, idleTimeoutMs }: Timeouts,
  ) {
    this.dispatcher = new Agent({
      connections: CONNECTIONS,
      connect: { timeout: connectTimeoutMs },
      headersTimeout: idleTimeoutMs,
      bodyTimeout: idleTimeoutMs,
    });
  }

  /** @param path begins with a slash */
  endpoint(path: string, options: HttpEndpointOptions): HttpEndpoint {
    return new HttpEndpoint(`${this.baseUrl}${path}`, this.dispatcher, options);
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }
}
