/**
 * Forwards requests of the browser to the proxy and records them with their statuses. It can remove the headers in
 * which a browser reports the origin of a request, because older browsers do not send them.
 */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** Listens on its own port, and replaces this port with the port of the proxy in all headers. */
export interface PortRelay {
  readonly port: number;
  /** Returns the requests since the last call: method, path, and the status or the error. */
  takeReceived(): readonly string[];
  readonly pendingCount: number;
  readonly arrivedCount: number;
  close(): void;
}

export async function startRelay(to: number, omittedHeaders: readonly string[]): Promise<PortRelay> {
  let received: string[] = [];
  let underWay = 0;
  let arrived = 0;
  const server = createServer((request, response) => {
    forward(request, (upstreamResponse) => {
      response.on('error', () => undefined);
      if (!upstreamResponse) return void response.destroy();
      response.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
      upstreamResponse.pipe(response);
    });
  });
  server.on('upgrade', (request, socket: Socket) => {
    socket.on('error', () => undefined);
    forward(request, (upstreamResponse) => {
      upstreamResponse?.resume();
      socket.end(`HTTP/1.1 ${upstreamResponse?.statusCode ?? 502} Relayed\r\nconnection: close\r\n\r\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  function forward(
    request: IncomingMessage,
    onResponse: (upstreamResponse: IncomingMessage | undefined) => void,
  ): void {
    underWay++;
    arrived++;
    const headers = Object.entries(request.headersDistinct)
      .filter(([name]) => !omittedHeaders.some((prefix) => name.startsWith(prefix)))
      .map(([name, values = []]) => [name, values.join(', ').replaceAll(`:${port}`, `:${to}`)]);
    const { method = 'GET', url = '/' } = request;
    const options = { host: '127.0.0.1', port: to, method, path: url, headers: Object.fromEntries(headers) };
    const finish = (status: number | string, upstreamResponse?: IncomingMessage) => {
      underWay--;
      received.push(`${method} ${url.split('?')[0]} ${status}`);
      onResponse(upstreamResponse);
    };
    const upstreamRequest = httpRequest(options, (upstreamResponse) =>
      finish(upstreamResponse.statusCode ?? 0, upstreamResponse),
    );
    upstreamRequest.once('upgrade', (upstreamResponse, socket) => {
      socket.destroy();
      finish(101, upstreamResponse);
    });
    upstreamRequest.once('error', (error) => finish(error.message));
    request.pipe(upstreamRequest);
  }

  return {
    port,
    takeReceived() {
      const recent = received;
      received = [];
      return recent;
    },
    get pendingCount() {
      return underWay;
    },
    get arrivedCount() {
      return arrived;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
