/** A server whose responses are set by tests, for clients that must not trust their server. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export type StubHandler = (response: ServerResponse, request: IncomingMessage, body: string) => void;

/** A received request. */
export interface StubRequest {
  readonly line: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export class StubServer {
  readonly requests: StubRequest[] = [];
  handler: StubHandler = (response) => void response.writeHead(404).end();
  private readonly server = createServer(((request, response) => {
    void text(request).then((body) => {
      this.requests.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
      this.handler(response, request, body);
    });
  }) as RequestListener);

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}

/** Responds with JSON. A string is sent unchanged, so it can be invalid JSON. */
export function respondWithJson(body: unknown, status = 200): StubHandler {
  const content = typeof body === 'string' ? body : JSON.stringify(body);
  return (response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(content);
}

/** Responds with a stream of JSON events. */
export function respondWithEvents(events: readonly object[]): StubHandler {
  const content = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(content);
}
