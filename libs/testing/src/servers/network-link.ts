/**
 * Forwards connections to a server. A test can interrupt them without a signal to either end, as when a host is lost or
 * a process is suspended.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

const HOST = '127.0.0.1';

export class NetworkLink {
  private readonly sockets = new Set<Socket>();
  private isInterrupted = false;

  private constructor(
    private readonly server: Server,
    private readonly port: number,
  ) {}

  /** @param port port of a server on this host */
  static async open(port: number): Promise<NetworkLink> {
    const server = createServer();
    const link = new NetworkLink(server, port);
    server.on('connection', (near) => link.forward(near));
    server.listen(0, HOST);
    await once(server, 'listening');
    return link;
  }

  get address(): string {
    return `${HOST}:${(this.server.address() as AddressInfo).port}`;
  }

  /** Stops forwarding data until `restore`. Connections stay open, and new ones are accepted. */
  interrupt(): void {
    this.isInterrupted = true;
    for (const socket of this.sockets) socket.pause();
  }

  restore(): void {
    this.isInterrupted = false;
    for (const socket of this.sockets) socket.resume();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private forward(near: Socket): void {
    const far = connect(this.port, HOST);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(from);
      from.on('data', (bytes) => to.write(bytes));
      from.on('end', () => to.end());
      from.on('error', () => {});
      from.on('close', () => {
        this.sockets.delete(from);
        to.destroy();
      });
      if (this.isInterrupted) from.pause();
    }
  }
}
