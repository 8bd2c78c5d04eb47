/** Serves `/health`, `/health/live` and `/health/ready`, as a gateway does, for a process without an HTTP API. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { RELEASE, type Settings, StartError } from '#foundation';
import type { Readiness } from './readiness.ts';

const MAX_CONNECTIONS = 100;
const RECEIVE_TIMEOUT_MS = 5_000;

export class HealthListener {
  private constructor(
    private readonly server: Server,
    /** Such as `http://127.0.0.1:3001`. */
    readonly url: string,
  ) {}

  /** @throws StartError if the port cannot be used */
  static async open(readiness: Readiness, port: number, { host }: Pick<Settings, 'host'>): Promise<HealthListener> {
    const timeouts = { headersTimeout: RECEIVE_TIMEOUT_MS, requestTimeout: RECEIVE_TIMEOUT_MS };
    const server = createServer(timeouts, async ({ url }, response) => {
      if (url === '/health') return sendJson(response, 200, { status: 'ok', ...RELEASE });
      if (url === '/health/live') return sendJson(response, 200, { status: 'ok' });
      if (url !== '/health/ready') return sendJson(response, 404, { status: 'error', message: 'Path not found' });
      const report = await readiness.report();
      sendJson(response, report.status === 'ok' ? 200 : 503, report);
    });
    server.maxConnections = MAX_CONNECTIONS;
    await new Promise<void>((resolve, reject) => {
      server.once('error', ({ message }) => reject(new StartError(`HEALTH_PORT ${port} cannot be used: ${message}.`)));
      server.listen(port, host, resolve);
    });
    const { address, port: actualPort, family } = server.address() as AddressInfo;
    return new HealthListener(server, `http://${family === 'IPv6' ? `[${address}]` : address}:${actualPort}`);
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(body));
}
