import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ConnectionGuard } from './connections.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const MIB = 1024 * 1024;
const PLACES = { '127.0.0.1': 'one', '127.0.0.2': 'two', '127.0.0.3': undefined } as const;

let now: number;
let alarms: string[];
let connections: ConnectionGuard;
let server: Server;
let sockets: Socket[];
let onRequest: (request: IncomingMessage, response: ServerResponse) => void;

beforeEach(async () => {
  [now, alarms, sockets] = [0, [], []];
  onRequest = (request, response) => void request.resume().once('end', () => response.end('done'));
  server = createServer((request, response) => onRequest(request, response));
  connections = new ConnectionGuard({
    max: 4,
    maxPerAddressGroup: 2,
    toAddressGroup: (address) => PLACES[address as keyof typeof PLACES],
    reportError: (problem) => void alarms.push(problem),
    now: () => now,
  });
  connections.guard(server);
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => socket.end(code));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  connections.close();
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});

/** Opens a connection. Resolves once the server has accepted or closed it. */
async function opened(localAddress: keyof typeof PLACES): Promise<Socket> {
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', localAddress });
  sockets.push(socket);
  socket.on('error', () => {});
  await once(server, 'connection');
  return socket;
}

async function saidBy(socket: Socket): Promise<string> {
  let said = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    said += piece;
  });
  await once(socket, 'close');
  return said;
}

/** Sends the head of a request and the first part of its body. */
async function begun(socket: Socket, length: number, body: string): Promise<IncomingMessage> {
  const [[request]] = await Promise.all([
    once(server, 'request') as Promise<[IncomingMessage]>,
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${body}`),
  ]);
  return request;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

function later(seconds: number): void {
  now += seconds * 1_000;
  connections.sweep();
}

describe('connections', () => {
  test('are limited per address, except for proxies, and in total', async () => {
    const first = await opened('127.0.0.1');
    await opened('127.0.0.1');
    await saidBy(await opened('127.0.0.1'));
    await opened('127.0.0.2');
    await opened('127.0.0.3');
    await saidBy(await opened('127.0.0.3'));
    expect(connections.count).toBe(4);
    expect(alarms).toEqual(['connections rejected: one address or network has 2', 'connections rejected: there are 4']);
    first.destroy();
    await until(() => connections.count === 3);
    await opened('127.0.0.1');
    expect(connections.count).toBe(4);
  });

  test('are closed if a body stops arriving, even after a fast start, but not while it arrives', async () => {
    const [still, steady] = [await opened('127.0.0.1'), await opened('127.0.0.1')];
    const fast = await begun(still, 10 * MIB, 'x'.repeat(MIB));
    await until(() => fast.socket.bytesRead > MIB);
    const request = await begun(steady, 10 * MIB, 'x');
    const said = saidBy(still);
    later(5);
    steady.write('x'.repeat(100_000));
    await until(() => request.socket.bytesRead > 100_000);
    later(16);
    expect([await said, steady.destroyed]).toEqual(['ERR_HTTP_REQUEST_TIMEOUT', false]);
  });

  test('are not closed if the body stops because the server does not read it', async () => {
    onRequest = () => {};
    const socket = await opened('127.0.0.1');
    const request = await begun(socket, MIB, 'x'.repeat(1_000));
    await until(() => request.readableLength > 0);
    for (let i = 0; i < 5; i++) later(20);
    expect(connections.count).toBe(1);
  });

  test('with a response of 64 MiB that the client does not read are closed, but not within 80 seconds', async () => {
    onRequest = (_, response) => void response.end(Buffer.alloc(64 * MIB));
    const socket = await opened('127.0.0.1');
    socket.pause();
    await begun(socket, 0, '');
    later(5);
    for (let passed = 0; passed <= 60; passed += 20) later(20);
    expect(connections.count).toBe(1);
    later((64 * MIB) / 4_096);
    await until(() => connections.count === 0);
  });

  test('are closed if they send too many requests before the responses, and the excess is not handled', async () => {
    let answering = 0;
    onRequest = () => void answering++;
    const socket = await opened('127.0.0.1');
    const said = saidBy(socket);
    socket.write(GET.repeat(1_000));
    expect(await said).toBe('');
    expect(answering).toBe(16);
    expect(alarms).toEqual(['connection closed: it sent more than 16 requests before their responses']);
  });

  test('are not closed while at most eight requests wait for responses, even after a hundred requests', async () => {
    const socket = await opened('127.0.0.1');
    let answers = 0;
    const answered = new Promise<void>((resolve) => {
      socket.setEncoding('latin1').on('data', (piece: string) => {
        for (const _ of piece.matchAll(/HTTP.1.1 200/g)) {
          if (++answers === 100) resolve();
          if (answers + 8 <= 100) socket.write(GET);
        }
      });
    });
    socket.write(GET.repeat(8));
    await answered;
    expect(connections.count).toBe(1);
  });

  test('of a closed server stay open until their clients have read the responses', async () => {
    const used = await opened('127.0.0.2');
    used.write(GET);
    await once(used.resume(), 'data');
    onRequest = (_, response) => void response.writeHead(200, { connection: 'close' }).end(Buffer.alloc(64 * MIB));
    const slow = await opened('127.0.0.1');
    slow.pause();
    await begun(slow, 0, '');
    const closed = new Promise((resolve) => void server.close(resolve));
    await until(() => connections.count <= 1);
    expect((await saidBy(slow.resume())).length).toBeGreaterThan(64 * MIB);
    await closed;
  });

  test('of a draining process are waited for, and closed after the response to a later request', async () => {
    const answers: ServerResponse[] = [];
    onRequest = (_, response) => void answers.push(response);
    const [asked, askedLater] = [await opened('127.0.0.1'), await opened('127.0.0.2')];
    await connections.waitUntilIdle(60_000);
    await begun(asked, 0, '');
    connections.startDraining();
    await begun(askedLater, 0, '');
    let isIdle = false;
    const idle = connections.waitUntilIdle(60_000).then(() => {
      isIdle = true;
    });
    const said = saidBy(askedLater);
    answers[1]?.end('done');
    expect(await said).toMatch(/connection: close.*done/is);
    expect(isIdle).toBe(false);
    asked.destroy();
    await idle;
  });
});
