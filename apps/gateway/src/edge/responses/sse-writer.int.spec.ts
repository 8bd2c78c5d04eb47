import { expect, test } from '@jest/globals';
import fastify from 'fastify';
import { SseWriter } from './sse-writer.ts';

test('sends comments, which are not events, while a stream is idle', async () => {
  const app = fastify();
  let client: SseWriter | undefined;
  app.get('/', (_, reply) => {
    client = new SseWriter(reply, 1);
    client.begin();
  });
  const response = await fetch(await app.listen({ port: 0, host: '127.0.0.1' }));
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const read = async () => Buffer.from((await reader.read()).value ?? []).toString();
  expect(await read()).toMatch(/^(: COUNTINGHOUSE PROCESSING\n\n)+$/);
  await client?.write(Buffer.from('data: 1\n\n'));
  client?.finish('data: [DONE]\n\n');
  let rest = '';
  for (let piece = await read(); piece !== ''; piece = await read()) rest += piece;
  expect(rest.replaceAll(': COUNTINGHOUSE PROCESSING\n\n', '')).toBe('data: 1\n\ndata: [DONE]\n\n');
  await app.close();
});
