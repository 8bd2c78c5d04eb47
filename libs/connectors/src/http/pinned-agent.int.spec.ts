import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { createSelfSignedCertificate } from '../../../testing/src/servers/self-signed.ts';
import { createPinnedAgent } from './pinned-agent.ts';

const NAME = 'pictures.example.com';

test('a connection is made to the given address, and the request has the original hostname', async () => {
  const server = createServer((request, response) => response.end(request.headers.host)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = createPinnedAgent(['127.0.0.1'], 1_000);
  const answered = await agent.request({ origin: `http://${NAME}:${port}`, path: '/a', method: 'GET' });
  expect(await answered.body.text()).toBe(`${NAME}:${port}`);
  await agent.close();
  server.close();
});

test('TLS uses the original hostname, and a self-signed certificate is rejected', async () => {
  const asked = Promise.withResolvers<string>();
  const SNICallback = (name: string, done: (error: null) => void) => {
    asked.resolve(name);
    done(null);
  };
  const server = createTlsServer({ ...(await createSelfSignedCertificate()), SNICallback }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = createPinnedAgent(['127.0.0.1'], 1_000);
  const refused = agent.request({ origin: `https://${NAME}:${port}`, path: '/a', method: 'GET' });
  await expect(refused).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  expect(await asked.promise).toBe(NAME);
  await agent.destroy();
  server.close();
});

test('the second address is tried if the first one refuses the connection', async () => {
  const server = createServer((_, response) => response.end('here')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = createPinnedAgent(['127.0.0.2', '127.0.0.1'], 2_000);
  const answered = await agent.request({ origin: `http://${NAME}:${port}`, path: '/', method: 'GET' });
  expect(await answered.body.text()).toBe('here');
  await agent.close();
  server.close();
});
