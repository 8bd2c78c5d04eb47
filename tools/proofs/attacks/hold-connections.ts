/** Holds connections without an honest use of them, in a thread of its own, from as many addresses of this machine as it is told. */
import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

export interface HolderParams {
  readonly port: number;
  readonly connections: number;
  /** Of which so many connections each come. */
  readonly addresses: number;
  /** What is sent on each of them; nothing more follows. */
  readonly sent: string;
  /** Whether what is answered is read. */
  readonly reads: boolean;
}

/** Opened at a time. */
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
