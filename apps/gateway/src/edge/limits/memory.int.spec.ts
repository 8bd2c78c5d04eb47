/** Limits of the memory that bodies may use while their requests run. */

import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { HeavyWorkQueue } from '#application';
import { createTestRuntime } from '#testing';
import { INTERNAL_ERROR, sendError, toErrorResponse } from '../errors/errors.ts';
import { BodyParser } from '../validation/body-parser.ts';

const KIB = 1024;
const MAX = 1024 * KIB;
const CHUNKED = undefined;

let server: FastifyInstance;
let bodies: BodyParser;
let port: number;
/** What an operation waits for before it responds. */
let wait: Promise<unknown>;
beforeAll(async () => {
  bodies = new BodyParser({
    maxBytes: MAX,
    heavyWork: new HeavyWorkQueue(createTestRuntime()),
    isFunded: async (accountId) => accountId.startsWith('rich'),
  });
  server = fastify();
  bodies.registerParsers(server);
  server.decorateRequest('caller', null as never);
  server.addHook('onRequest', (request: FastifyRequest, _, done) => {
    const accountId = String(request.headers['x-credit-id']);
    if (accountId !== 'nobody') request.caller = { accountId, keyId: null };
    done();
  });
  server.addHook('onRoute', (route) => {
    route.bodyLimit = MAX;
  });
  bodies.registerBodyLimits(server);
  server.setErrorHandler((error, _, reply) => sendError(reply, toErrorResponse(error) ?? INTERNAL_ERROR));
  server.post('/', { config: { operation: {} as never } }, async ({ body }) => {
    await wait;
    return (body as { readonly text: string }).text.length;
  });
  await server.listen({ port: 0, host: '127.0.0.1' });
  port = (server.server.address() as { port: number }).port;
});
afterAll(() => server.close());
beforeEach(() => {
  wait = Promise.resolve();
});

function asked(from: string, length: number | undefined): ClientRequest {
  const size = length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': length };
  const headers = { 'x-credit-id': from, 'content-type': 'application/json', ...size };
  const sending = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/', headers });
  sending.flushHeaders();
  return sending;
}

async function answerOf(sending: ClientRequest) {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sending.once('response', resolve).once('error', reject);
  });
  return [answer.statusCode, await text(answer), answer.headers['retry-after']];
}

function bodyOf(bytes: number): string {
  return JSON.stringify({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
}

async function held(bytes: number): Promise<void> {
  while (bodies.usedBytes !== bytes) await new Promise(setImmediate);
}

test.each(['poor', 'nobody'])(
  'lets a caller who has not paid (%s) use an eighth of the memory, and all such callers together a quarter',
  async (from) => {
    const many = [from, `${from} too`].map((each) => asked(each, MAX / 4));
    for (const each of many) each.write(bodyOf(MAX / 8));
    await held(MAX / 4);
    const small = asked('poor three', 1_000).end(bodyOf(1_000));
    expect((await answerOf(small))[0]).toBe(200);
    expect(await answerOf(asked('poor three', CHUNKED).end(bodyOf(KIB)))).toEqual([503, expect.any(String), '5']);
    const rich = asked('rich', MAX / 4).end(bodyOf(MAX / 4));
    expect((await answerOf(rich))[0]).toBe(200);
    for (const each of many) each.on('error', () => {}).destroy();
    await held(0);
  },
);

test('counts a body until the response to its request has been sent', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  wait = promise;
  const first = asked('rich', MAX / 2).end(bodyOf(MAX / 2));
  await held(MAX / 2);
  expect((await answerOf(asked('rich', 20 * KIB).end(bodyOf(20 * KIB))))[0]).toBe(503);
  resolve();
  expect((await answerOf(first))[0]).toBe(200);
  await held(0);
});

test('needs less than 64 MiB for a body of 400 KiB that arrives byte by byte', async () => {
  const sending = asked('rich', CHUNKED);
  const { promise, resolve } = Promise.withResolvers<void>();
  wait = promise;
  const body = Buffer.from(bodyOf(400 * KIB));
  const before = process.memoryUsage().arrayBuffers;
  sending.cork();
  for (const byte of body) sending.write(Buffer.of(byte));
  sending.uncork();
  sending.end();
  await held(body.length);
  resolve();
  expect((await answerOf(sending))[0]).toBe(200);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * MAX);
});
