/** The minimum that a gateway does: Fastify receives a request, undici forwards it, and the response is piped back. */
import fastify from 'fastify';
import { Agent, request } from 'undici';

const upstream = process.env.UPSTREAM ?? '';
const dispatcher = new Agent({ connections: 1_024 });
const app = fastify();

for (const path of ['/chat/completions', '/audio/speech', '/contents'])
  app.post(`/v1${path}`, async (incoming, reply) => {
    const headers = { 'content-type': 'application/json', authorization: 'Bearer sandbox' };
    const body = JSON.stringify(incoming.body);
    const response = await request(`${upstream}${path}`, { method: 'POST', headers, body, dispatcher });
    reply.status(response.statusCode).type(String(response.headers['content-type']));
    return reply.send(response.body);
  });

const url = await app.listen({ port: 0, host: '127.0.0.1' });
process.stdout.write(`listening on ${url}\n`);
process.on('SIGTERM', () => process.exit(0));
