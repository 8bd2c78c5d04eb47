import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayClient } from './gateway-client.ts';

let answer: (response: ServerResponse) => void;
const server = createServer((_, response) => answer(response));
let gateway: GatewayClient;
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  gateway = new GatewayClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'sk-key');
});
afterAll(async () => {
  await gateway.close();
  server.close();
});

test('reports an interrupted model list or attestation bundle as an error of the gateway', async () => {
  answer = (response) => {
    response.writeHead(200, { 'content-length': 1_000 }).write('{"data":[');
    setTimeout(() => response.destroy(), 20);
  };
  const failed = { status: 502, code: 'gateway_unreachable' };
  await expect(gateway.fetchModels()).rejects.toMatchObject(failed);
  await expect(gateway.fetchBundle('one', false)).rejects.toMatchObject(failed);
});
