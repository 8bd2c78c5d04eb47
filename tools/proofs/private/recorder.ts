/** A TCP proxy that records all bytes of both directions in files. */
import { createWriteStream, type WriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Recorder {
  readonly port: number;
  readonly url: string;
  /** The files with the bytes that clients sent, and with those that they received. */
  readonly files: readonly [sent: string, received: string];
  readonly connections: number;
  /** Returns the method and path of each request so far. */
  readRequests(): Promise<readonly string[]>;
  /** Forwards later connections to another port. */
  setTargetPort(port: number): void;
  /** Ends all open connections, as a network failure does. */
  closeConnections(): void;
  close(): Promise<void>;
}

const REQUEST_LINE = /(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) \/\S* HTTP\/1\.1\r\n/g;

/**
 * @param port the port on 127.0.0.1 to forward to
 * @param name the path of the files, without their extension
 */
export async function startRecorder(port: number, name: string): Promise<Recorder> {
  const files = [`${name}.sent`, `${name}.received`] as const;
  const [sent, received] = files.map((file) => createWriteStream(file)) as [WriteStream, WriteStream];
  const open = new Set<Socket>();
  let to = port;
  let connections = 0;
  const server = createServer((client) => {
    connections++;
    const upstream = connect(to, '127.0.0.1');
    for (const [from, onto, recording] of [
      [client, upstream, sent],
      [upstream, client, received],
    ] as const) {
      open.add(from);
      from.setNoDelay(true);
      from.on('data', (chunk) => void recording.write(chunk));
      from.on('error', () => onto.destroy());
      from.on('close', () => {
        open.delete(from);
        onto.destroySoon();
      });
      from.pipe(onto);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const ownPort = (server.address() as AddressInfo).port;
  const flush = () =>
    Promise.all([sent, received].map((file) => new Promise<void>((resolve) => void file.write('', () => resolve()))));
  return {
    port: ownPort,
    files,
    url: `http://127.0.0.1:${ownPort}`,
    get connections() {
      return connections;
    },
    async readRequests() {
      await flush();
      const lines = (await readFile(files[0], 'latin1')).match(REQUEST_LINE) ?? [];
      return lines.map((line) => line.replace(/ HTTP\/1\.1\r\n$/, ''));
    },
    setTargetPort(other) {
      to = other;
    },
    closeConnections() {
      for (const socket of open) socket.destroy();
    },
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await Promise.all([sent, received].map((file) => new Promise<void>((resolve) => file.end(resolve))));
    },
  };
}
