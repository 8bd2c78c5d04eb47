/** Uploads are written to disk while they arrive: together they need less memory than their files have bytes. */
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import fastify from 'fastify';
import { HeavyWorkQueue } from '#application';
import { createTestRuntime, extendTimeouts } from '#testing';
import { BodyParser } from '../validation/body-parser.ts';
import { Upload } from './upload.ts';
import { Uploads } from './uploads.ts';

const MIB = 1024 * 1024;
const AT_ONCE = 50;
const FILE_BYTES = 4 * MIB;
/** After this time without data, an upload fails. On a busy host, one of many may wait for longer. */
const MAX_IDLE_MS = 20_000;
const PIECE = Buffer.alloc(64 * 1024);
/** Includes garbage that is not collected yet, and the memory of the clients in this same process. */
const MOST_MORE = 150 * MIB;

test(`${AT_ONCE} concurrent uploads of ${FILE_BYTES / MIB} MiB need less than ${MOST_MORE / MIB} MiB`, async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-uploads-'));
  const uploads = await Uploads.open({
    directory,
    maxBytes: 1024 * MIB,
    isFunded: async () => true,
    reportError: () => {},
  });
  const server = fastify({ bodyLimit: 1024 * MIB });
  const bodies = new BodyParser({
    maxBytes: 1024 * MIB,
    heavyWork: new HeavyWorkQueue(createTestRuntime()),
    isFunded: async () => true,
  });
  bodies.registerParsers(server);
  server.decorateRequest('caller', null as never);
  server.addHook('onRequest', (request, _, done) => {
    request.caller = { accountId: 'one', keyId: null };
    done();
  });
  bodies.registerBodyLimits(server);
  uploads.registerParser(server);
  const allThere = Promise.withResolvers<void>();
  let there = 0;
  const config = { operation: { upload: { maxBytes: FILE_BYTES, files: ['file'] } } as never };
  server.post('/file', { config, bodyLimit: 1024 * MIB }, async ({ body }) => {
    if (++there === AT_ONCE) allThere.resolve();
    await allThere.promise;
    return (body as Upload).files.map(({ size }) => size);
  });
  const address = await server.listen({ port: 0, host: '127.0.0.1' });

  const idle = extendTimeouts(MAX_IDLE_MS);
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }, 10);
  const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => send(`${address}/file`)));
  clearInterval(watch);
  idle.end();
  expect(answers).toEqual(Array(AT_ONCE).fill(`[${FILE_BYTES}]`));
  expect(most).toBeLessThan(MOST_MORE);
  await server.close();
  await uploads.close();
  await rm(directory, { recursive: true });
});

/** Sends the same few bytes repeatedly, so that the client needs little memory. */
async function send(url: string): Promise<string> {
  const head = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';
  const body = function* () {
    yield Buffer.from(head);
    for (let left = FILE_BYTES; left > 0; left -= PIECE.length) yield PIECE;
    yield Buffer.from('\r\n--x--\r\n');
  };
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request(url, { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' } });
  asked.once('error', reject).once('response', async (answer) => {
    let text = '';
    for await (const piece of answer) text += piece;
    resolve(text);
  });
  Readable.from(body()).pipe(asked);
  return promise;
}
