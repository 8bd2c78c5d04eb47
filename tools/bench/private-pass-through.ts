/** The minimum that a gateway for private models does: it forwards bytes in both directions, without billing. */
import fastify from 'fastify';
import { Agent, request } from 'undici';

const upstream = process.env.UPSTREAM ?? '';
const dispatcher = new Agent({ connections: 1_024 });
const app = fastify({ bodyLimit: 32 * 1024 * 1024 });
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));

app.post('*', async (incoming, reply) => {
  const { connection: _, host: __, ...headers } = incoming.headers;
  const body = incoming.body as Buffer;
  const response = await request(upstream + incoming.url, { method: 'POST', headers, body, dispatcher });
  reply.status(response.statusCode);
  for (const name of ['content-type', 'ehbp-response-nonce']) {
    const value = response.headers[name];
    if (value !== undefined) reply.header(name, value);
  }
  return reply.send(response.body);
});

const url = await app.listen({ port: 0, host: '127.0.0.1' });
process.stdout.write(`listening on ${url}\n`);
process.on('SIGTERM', () => process.exit(0));
