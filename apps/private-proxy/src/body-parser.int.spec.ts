import { afterAll, expect, test } from '@jest/globals';
import { fastify } from 'fastify';
import { registerBodyParser } from './body-parser.ts';

const app = fastify();
afterAll(() => app.close());

test('rejects bodies beyond the shared memory limit, and accepts them once other requests have ended', async () => {
  registerBodyParser(app, 1_000);
  app.setErrorHandler((error: { readonly status: number }, _, reply) => reply.code(error.status).send());
  const { promise, resolve } = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  app.post('/', async ({ body }) => {
    reached.resolve();
    await promise;
    return (body as Buffer).length;
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const headers = { 'content-type': 'application/json' };
  const send = async (bytes: number) => (await fetch(url, { method: 'POST', headers, body: 'x'.repeat(bytes) })).status;
  const first = send(700);
  await reached.promise;
  expect([await send(301), await send(301)]).toEqual([503, 503]);
  resolve();
  expect([await first, await send(1_000)]).toEqual([200, 200]);
});
