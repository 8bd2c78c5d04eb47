/** A way to PostgreSQL on which a test decides which connections the server rejects, and when it listens. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** An error response of PostgreSQL. The SQLSTATE is that of a server that cannot serve yet. */
export const REJECTIONS = {
  startingUp: ['57P03', 'the database system is starting up'],
  full: ['53300', 'sorry, too many clients already'],
} as const;

export class DelayedDatabase {
  /** Number of connections that clients have opened. */
  connections = 0;

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
    private port: number,
  ) {}

  /**
   * @param isRejected whether the connection with this number, the first of which is 1, gets the rejection
   */
  static async open(
    targetUrl: string,
    isRejected: (connection: number) => boolean,
    rejection: readonly [sqlState: string, message: string] = REJECTIONS.startingUp,
  ): Promise<DelayedDatabase> {
    const target = new URL(targetUrl);
    const server = createServer((client: Socket) => {
      client.on('error', () => {});
      database.connections++;
      if (isRejected(database.connections)) client.once('data', () => client.end(toErrorResponse(...rejection)));
      else forward(client, target);
    });
    const database = new DelayedDatabase(server, target, 0);
    await database.listen();
    return database;
  }

  get url(): string {
    return Object.assign(new URL(this.target), { port: this.port }).href;
  }

  /** From now on connections are refused, until `listen` is called. */
  close(): void {
    this.server.close();
  }

  async listen(): Promise<void> {
    await once(this.server.listen(this.port, '127.0.0.1'), 'listening');
    this.port = (this.server.address() as AddressInfo).port;
  }
}

function forward(client: Socket, { hostname, port }: URL): void {
  const there = connect(Number(port), hostname);
  client.pipe(there).pipe(client);
  client.on('close', () => there.destroy());
  there.on('close', () => client.destroy()).on('error', () => {});
}

function toErrorResponse(sqlState: string, message: string): Buffer {
  const fields = ['SFATAL', 'VFATAL', `C${sqlState}`, `M${message}`].map((field) => `${field}\0`);
  const body = Buffer.from(`${fields.join('')}\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
