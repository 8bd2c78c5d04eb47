/**
 * A reverse proxy that serves the keys of an enclave at the standard path of EHBP, and forwards other requests to the
 * gateway.
 */
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

const KEYS = '/.well-known/hpke-keys';

export interface Front {
  readonly url: string;
  close(): void;
}

/** @param enclave the URL of the enclave whose keys are served */
export async function startFront(gateway: string, enclave: string): Promise<Front> {
  return startLoopbackServer((request, response) => {
    const target = request.url === KEYS ? `${enclave}${KEYS}` : `${gateway}${request.url}`;
    const upstreamRequest = httpRequest(target, {
      method: request.method ?? 'GET',
      headers: { ...request.headers, host: new URL(target).host },
    });
    upstreamRequest.once('response', (upstreamResponse) => {
      response.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
      upstreamResponse.once('end', () => response.addTrailers(toTrailers(upstreamResponse))).pipe(response);
      upstreamResponse.once('error', () => response.destroy());
    });
    upstreamRequest.once('error', () => response.destroy());
    response.once('close', () => upstreamRequest.destroy());
    request.pipe(upstreamRequest);
  });
}

function toTrailers({ trailers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(trailers).map(([name, value]) => [name, value ?? '']));
}

/** @param port the port on 127.0.0.1 and, if the host has IPv6, on ::1; 0 for any free port on 127.0.0.1 alone */
export async function startLoopbackServer(
  handleRequest: (request: IncomingMessage, response: ServerResponse) => void,
  port = 0,
): Promise<Front> {
  const hosts = port === 0 ? ['127.0.0.1'] : ['127.0.0.1', '::1'];
  const servers: Server[] = [];
  for (const host of hosts) {
    const server = createServer(handleRequest);
    servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        host === '::1' && error.code === 'EADDRNOTAVAIL' ? resolve() : reject(error),
      );
      server.listen(port, host, resolve);
    });
  }
  const url = `http://127.0.0.1:${((servers[0] as Server).address() as AddressInfo).port}`;
  return {
    url,
    close() {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}
