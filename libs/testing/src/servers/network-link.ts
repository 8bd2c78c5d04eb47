/** A line to a server that can be cut without either end being told, as by a lost host or a stopped process. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

const HOST = '127.0.0.1';

export class Cable {
  private readonly sockets = new Set<Socket>();
  private isCut = false;

  private constructor(
    private readonly server: Server,
    private readonly port: number,
  ) {}

  /** @param port of a server on this machine */
  static async to(port: number): Promise<Cable> {
    const server = createServer();
    const cable = new Cable(server, port);
    server.on('connection', (near) => cable.lay(near));
    server.listen(0, HOST);
    await once(server, 'listening');
    return cable;
  }

  get address(): string {
    return `${HOST}:${(this.server.address() as AddressInfo).port}`;
  }

  /** Connections stay, and new ones are accepted; nothing is passed on until it is mended. */
  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.pause();
  }

  mend(): void {
    this.isCut = false;
    for (const socket of this.sockets) socket.resume();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private lay(near: Socket): void {
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
      if (this.isCut) from.pause();
    }
  }
}
