/** The minimum that a gateway for images does: it forwards a request, and stores the images of the response. */
import fastify from 'fastify';
import { Agent, request } from 'undici';
import { generateFileId } from '#application';
import { LocalFiles } from '#connectors';
import { nodeRandomness } from '#runtime';

const DAY_MS = 86_400_000;
const upstream = process.env.UPSTREAM ?? '';
const files = await LocalFiles.open(process.env.FILES_DIR ?? '');
const dispatcher = new Agent({ connections: 1_024 });
const app = fastify();

app.post('/v1/images/generations', async (incoming) => {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer sandbox' };
  const body = JSON.stringify(incoming.body);
  const response = await request(`${upstream}/images/generations`, { method: 'POST', headers, body, dispatcher });
  const { data } = (await response.body.json()) as { readonly data: readonly { readonly b64_json: string }[] };
  const id = generateFileId(nodeRandomness, 'gen', Date.now() + DAY_MS);
  const bytes = data.map(({ b64_json }) => Buffer.from(b64_json, 'base64'));
  await Promise.all(bytes.map((imageBytes, n) => files.save({ id, n, mediaType: 'image/png', bytes: imageBytes })));
  return { created: Math.floor(Date.now() / 1_000), data: data.map((_, n) => ({ url: `/v1/media/${id}/${n}` })) };
});

const url = await app.listen({ port: 0, host: '127.0.0.1' });
process.stdout.write(`listening on ${url}\n`);
process.on('SIGTERM', () => process.exit(0));
