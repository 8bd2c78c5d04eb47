/** Lightning nodes that fail while a customer waits: the response, and what counts as an open invoice afterwards. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PaymentMethods } from '#application';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';

/** Instead of 5 s. */
const LIGHTNING_TIMEOUT_MS = 500;

/** The node of its gateway accepts connections and never responds. */
let world: TestWorld;
/** The URL of a gateway whose node works. */
let working: string;
const servers: Server[] = [];
const sockets = new Set<Socket>();
beforeAll(async () => {
  world = await TestWorld.openWithSagas({ LND_REST_URL: await listen(createServer()), MAX_OPEN_INVOICES: '2' });
  Object.assign(world.getService(PaymentMethods), { lightningTimeoutMs: LIGHTNING_TIMEOUT_MS });
  working = await world.addGateway({ lndUrl: `${world.sandbox}/lnd` });
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
  await world.close();
});

async function listen(server: Server): Promise<string> {
  server.on('connection', (socket) => sockets.add(socket.on('error', () => {})));
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const topUp = (account: TestAccount, api: string) =>
  world.post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, account, api);

describe('a node that never responds', () => {
  test.each<[string, () => Promise<TestResponse>]>([
    ['a top-up', async () => topUp(await world.createAccount(), world.api)],
    [
      'a payment challenge',
      () => world.send('POST', '/v1/images/generations', { body: { model: 'google/nano-banana-2', prompt: 'A coin' } }),
    ],
  ])('delays %s until the limit, then the response is 503 with Retry-After', async (_, ask) => {
    const { status, headers, body } = await ask();
    expect([status, body.error.type, headers.get('retry-after')]).toEqual([503, 'upstream_unavailable', '5']);
  });
});

describe('MAX_OPEN_INVOICES', () => {
  test('does not count invoices that the node has rejected', async () => {
    const account = await world.createAccount();
    const node = createHttpServer((_, response) => response.writeHead(500).end('{}'));
    const rejecting = await world.addGateway({ lndUrl: await listen(node) });
    const statuses: number[] = [];
    for (const api of [rejecting, rejecting, rejecting, working, working, working])
      statuses.push((await topUp(account, api)).status);
    expect(statuses).toEqual([502, 502, 502, 201, 201, 429]);
  });

  test('counts invoices that the node may have created', async () => {
    const account = await world.createAccount();
    const statuses: number[] = [];
    for (const api of [world.api, world.api, working]) statuses.push((await topUp(account, api)).status);
    expect(statuses).toEqual([503, 503, 429]);
  });
});
