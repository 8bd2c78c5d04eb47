/**
 * Stands between the browser and the proxy: it sees what arrives and what is answered, and can leave out headers by which
 * a browser says where a request comes from, as browsers do that do not know them.
 */
import { request as ask, createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** An address that stands for another port, as everything that passes must say. */
export interface PortRelay {
  readonly port: number;
  /** What arrived since it was last asked: method, path and status. */
  take(): readonly string[];
  readonly underWay: number;
  readonly arrived: number;
  close(): void;
}

export async function startRelay(to: number, leftOut: readonly string[]): Promise<PortRelay> {
  let seen: string[] = [];
  let underWay = 0;
  let arrived = 0;
  const server = createServer((request, response) => {
    forward(request, (answer) => {
      response.on('error', () => undefined);
      if (!answer) return void response.destroy();
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
  });
  server.on('upgrade', (request, socket: Socket) => {
    socket.on('error', () => undefined);
    forward(request, (answer) => {
      answer?.resume();
      socket.end(`HTTP/1.1 ${answer?.statusCode ?? 502} Answered\r\nconnection: close\r\n\r\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  function forward(request: IncomingMessage, answered: (answer: IncomingMessage | undefined) => void): void {
    underWay++;
    arrived++;
    const headers = Object.entries(request.headersDistinct)
      .filter(([name]) => !leftOut.some((each) => name.startsWith(each)))
      .map(([name, values = []]) => [name, values.join(', ').replaceAll(`:${port}`, `:${to}`)]);
    const { method = 'GET', url = '/' } = request;
    const options = { host: '127.0.0.1', port: to, method, path: url, headers: Object.fromEntries(headers) };
    const over = (status: number | string, answer?: IncomingMessage) => {
      underWay--;
      seen.push(`${method} ${url.split('?')[0]} ${status}`);
      answered(answer);
    };
    const passed = ask(options, (answer) => over(answer.statusCode ?? 0, answer));
    passed.once('upgrade', (answer, socket) => {
      socket.destroy();
      over(101, answer);
    });
    passed.once('error', (error) => over(error.message));
    request.pipe(passed);
  }

  return {
    port,
    take() {
      const taken = seen;
      seen = [];
      return taken;
    },
    get underWay() {
      return underWay;
    },
    get arrived() {
      return arrived;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
