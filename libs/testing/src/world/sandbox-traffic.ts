import type { RequestListener, ServerResponse } from 'node:http';

/** The requests that a sandbox has received. */
export class SandboxTraffic {
  /** The method and the URL of each. */
  readonly requests: string[] = [];
  private readonly openCalls = new Set<ServerResponse>();

  readonly onRequest: RequestListener = ({ method, url }, response) => {
    this.requests.push(`${method} ${url}`);
    if (method !== 'POST') return;
    this.openCalls.add(response);
    response.once('close', () => this.openCalls.delete(response));
  };

  /** The number of POST requests whose response has not ended. */
  get openCallCount(): number {
    return this.openCalls.size;
  }
}
