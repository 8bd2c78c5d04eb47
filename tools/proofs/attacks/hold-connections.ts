/** Opens and holds connections of an attacker, in a separate thread, from several loopback addresses of this host. */
import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

export interface HolderParams {
  readonly port: number;
  readonly connections: number;
  /** The number of local addresses, over which the connections are distributed. */
  readonly addresses: number;
  /** Sent on each connection. Nothing follows it. */
  readonly sent: string;
  /** Whether responses are read. */
  readonly reads: boolean;
}

/** The number of connections that are opened at once. */
const AT_ONCE = 200;

const held = new Set<Socket>();

async function openConnections({ port, connections, addresses, sent, reads }: HolderParams): Promise<void> {
  let openedCount = 0;
  const openNext = async (): Promise<void> => {
    while (openedCount < connections) {
      const address = openedCount++ % addresses;
      const localAddress = `127.0.${1 + Math.floor(address / 250)}.${1 + (address % 250)}`;
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      held.add(socket);
      socket.on('close', () => held.delete(socket)).on('error', () => {});
      if (reads) socket.resume();
      else socket.pause();
      await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()));
      if (sent !== '') socket.write(sent);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, openNext));
}

await openConnections(workerData as HolderParams);
parentPort?.postMessage('held');
parentPort?.on('message', () => parentPort?.postMessage(held.size));
