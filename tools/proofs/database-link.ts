import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

type LinkState = 'connected' | 'disconnected' | 'rejecting';

/** The two ends of a forwarded connection. */
interface Connection {
  readonly near: Socket;
  readonly far: Socket;
  /** Whether the connection works while the others are disconnected. */
  isSpared: boolean;
}

/** Forwards data between a role and a database, over a link that can be interrupted in several ways. */
export class DatabaseLink {
  private readonly connections = new Set<Connection>();
  private readonly servers: ReturnType<typeof createServer>[] = [];
  private state: LinkState = 'connected';

  /** @param sparedName connections whose start-up message contains this text are never disconnected */
  constructor(private readonly sparedName?: string) {}

  /** Listens on `host`. @returns the URL under which the database is reachable through this link */
  async openProxy(databaseUrl: string, host: string): Promise<string> {
    const target = Number(new URL(databaseUrl).port);
    const server = createServer((near) => this.forward(near, target));
    this.servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    const address = new URL(databaseUrl);
    address.host = `${host}:${(server.address() as AddressInfo).port}`;
    return address.href;
  }

  /** Discards all data. Connections stay open, and neither end is notified. */
  disconnect(): void {
    this.state = 'disconnected';
  }

  /** Closes all connections, and rejects new ones. */
  reject(): void {
    this.state = 'rejecting';
    this.closeConnections();
  }

  /** Forwards the data of new connections. Closes earlier connections, whose data since the disconnection is lost. */
  reconnect(): void {
    this.state = 'connected';
    this.closeConnections();
  }

  close(): void {
    for (const server of this.servers) server.close();
    this.closeConnections();
  }

  private closeConnections(): void {
    for (const { near, far } of this.connections) {
      near.destroy();
      far.destroy();
    }
  }

  private forward(near: Socket, target: number): void {
    if (this.state === 'rejecting') return void near.on('error', () => {}).destroy();
    const connection: Connection = { near, far: connect(target, '127.0.0.1'), isSpared: false };
    const { far } = connection;
    this.connections.add(connection);
    const { sparedName } = this;
    if (sparedName !== undefined) {
      near.once('data', (startup) => {
        connection.isSpared = startup.includes(sparedName);
      });
    }
    for (const [from, to] of [[near, far] as const, [far, near] as const]) {
      from.on('data', (chunk) => this.isInterrupted(connection) || to.write(chunk));
      from
        .on('error', () => {})
        .on('close', () => {
          this.connections.delete(connection);
          if (!this.isInterrupted(connection)) to.destroy();
        });
    }
  }

  private isInterrupted({ isSpared }: Connection): boolean {
    return this.state === 'disconnected' && !isSpared;
  }
}
