/** Records the recent requests to data providers, so that tests can check what is sent to them. */
import type { IncomingHttpHeaders } from 'node:http';

const RETAINED_REQUESTS = 1_000;
const MAX_BODY_CHARACTERS = 64 * 1024;

export interface RecordedRequest {
  readonly vendor: string;
  readonly method: string;
  /** Path and query, with the prefix of the provider in the sandbox. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The first 64 Ki characters. */
  readonly body: string;
}

export class ReceivedRequests {
  private requests: RecordedRequest[] = [];

  add({ body, ...request }: RecordedRequest): void {
    this.requests.push({ ...request, body: body.slice(0, MAX_BODY_CHARACTERS) });
    if (this.requests.length >= 2 * RETAINED_REQUESTS) this.requests = this.requests.slice(-RETAINED_REQUESTS);
  }

  /** Oldest first. */
  list(): readonly RecordedRequest[] {
    return this.requests.slice(-RETAINED_REQUESTS);
  }

  clear(): void {
    this.requests = [];
  }
}
