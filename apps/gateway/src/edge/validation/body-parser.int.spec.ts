/** Bodies that the edge accepts or rejects: compressed, of other media types, with unusual field names. */
import { randomBytes } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openTappedWorld, type TappedWorld, type TestAccount } from '#testing';

const MIB = 1024 * 1024;
const CHAT = '/v1/chat/completions';
const HELLO = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: '[[sandbox tokens=1]]' }] };

let opened: TappedWorld;
let account: TestAccount;
beforeAll(async () => {
  opened = await openTappedWorld();
  account = await opened.world.createAccount(10.5);
});
afterAll(() => opened.close());

async function send(body: string | Uint8Array, headers: Record<string, string> = {}, route = CHAT) {
  const answer = await fetch(`${opened.world.api}${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json', ...headers },
    body: body as never,
  });
  return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) };
}

describe('a compressed body', () => {
  const json = JSON.stringify(HELLO);

  test.each(['gzip', 'GZIP', 'x-gzip'])('is accepted as %s', async (encoding) => {
    expect((await send(gzipSync(json), { 'content-encoding': encoding })).status).toBe(200);
  });

  test('is accepted by operations other than chats', async () => {
    const body = gzipSync('{"amount":1,"currency":"USD"}');
    expect((await send(body, { 'content-encoding': 'gzip' }, '/topup/create/btc-lightning')).status).toBe(201);
    expect((await send(gzipSync(''), { 'content-encoding': 'gzip' }, '/credits/balance')).status).toBe(200);
  });

  test.each<[string, () => Uint8Array]>([
    ['br', () => brotliCompressSync(json)],
    ['deflate', () => deflateSync(json)],
    ['gzip, gzip', () => gzipSync(gzipSync(json))],
    ['tea', () => Buffer.from(json)],
  ])('is rejected as %s, and the response names the supported encoding', async (encoding, body) => {
    const { status, headers, body: answer } = await send(body(), { 'content-encoding': encoding });
    expect([status, headers.get('accept-encoding'), answer.error.type]).toEqual([
      415,
      'gzip',
      'unsupported_media_type',
    ]);
    expect(answer.message).toContain('gzip');
  });

  test.each<[string, () => Uint8Array]>([
    ['not gzip', () => Buffer.from(json)],
    ['truncated', () => gzipSync(json).subarray(0, -12)],
    ['corrupt', () => gzipSync(json).fill(7, 12, 30)],
    ['followed by something else', () => Buffer.concat([gzipSync(json), Buffer.from('more')])],
  ])('is rejected if it is %s', async (_, body) => {
    const { status, body: answer } = await send(body(), { 'content-encoding': 'gzip' });
    expect([status, answer.status]).toEqual([400, 'error']);
  });

  /** Returns the compressed copies of a text, one after the other, which is compressed only once. */
  const compressRepeated = (text: string, count: number) => Buffer.concat(Array(count).fill(gzipSync(text)));

  test('is rejected with 413 if it exceeds the limit when decompressed', async () => {
    const noise = randomBytes(196_608).toString('base64');
    expect(noise.length * 101).toBeGreaterThan(25 * MIB);
    const body = Buffer.concat([gzipSync('{"user":"'), compressRepeated(noise, 101)]);
    const { status, body: answer } = await send(body, { 'content-encoding': 'gzip' });
    expect([status, answer.error.type]).toEqual([413, 'payload_too_large']);
    expect(answer.message).not.toContain('too highly compressed');
  });

  test('is rejected if it is too highly compressed, before so much is decompressed that it exceeds the limit', async () => {
    const bomb = compressRepeated(' '.repeat(MIB), 26);
    const { status, body } = await send(bomb, { 'content-encoding': 'gzip' });
    expect([status, body.message]).toEqual([413, 'The body is too highly compressed']);
  });

  test('may consist of several compressed parts', async () => {
    const parts = Buffer.concat([json.slice(0, 20), json.slice(20)].map((part) => gzipSync(part)));
    expect((await send(parts, { 'content-encoding': 'gzip' })).status).toBe(200);
  });

  test.each<[string, string, () => Uint8Array]>([
    ['/accounts/create', 'above the limit when decompressed', () => gzipSync(Buffer.alloc(10 * MIB, ' '))],
    ['/accounts/create', 'not gzip', () => Buffer.alloc(5_000)],
    ['/keys', 'not gzip', () => Buffer.alloc(70_000)],
  ])('too long for %s is rejected without affecting other requests, even if it is %s', async (route, _, body) => {
    const headers = { 'x-credit-id': account.creditId, 'content-encoding': 'gzip' };
    expect((await send(body(), headers, route)).status).toBe(413);
    expect((await send(gzipSync(json), { 'content-encoding': 'gzip' })).status).toBe(200);
  });

  test('is not decompressed without a valid credential', async () => {
    const headers = { authorization: 'Bearer sk-unknown', 'content-encoding': 'gzip' };
    expect((await send('no gzip', headers)).status).toBe(401);
  });
});

describe('a body of another type', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/xml'])(
    'such as %s is rejected, and the response names the supported type',
    async (type) => {
      const { status, body } = await send('x', { 'content-type': type });
      expect([status, body.message]).toEqual([415, 'The body must be application/json']);
    },
  );
});

describe('a property named __proto__', () => {
  test.each<[string, string]>([
    ['of the body', `{"__proto__":{"stream":true},${JSON.stringify(HELLO).slice(1)}`],
    ['of a message', JSON.stringify(HELLO).replace('{"role"', '{"__proto__":{"content":"x"},"role"')],
    ['of the tags', `{"metadata":{"__proto__":"x"},${JSON.stringify(HELLO).slice(1)}`],
  ])('%s is data like any other', async (_, body) => {
    const { status, body: answer } = await send(body);
    expect([status, answer.object]).toEqual([200, 'chat.completion']);
  });

  test('reaches the model if it is in a schema', async () => {
    const schema = '{"type":"object","properties":{"__proto__":{"type":"string"},"at":{"type":"string"}}}';
    const tools = `[{"type":"function","function":{"name":"look","parameters":${schema}}}]`;
    opened.tap.takeReceived();
    expect((await send(`{"tools":${tools},${JSON.stringify(HELLO).slice(1)}`)).status).toBe(200);
    expect(JSON.stringify(opened.tap.takeReceived())).toContain(schema);
  });

  test('does not change the other fields of a body', async () => {
    const { status, body } = await send('{"__proto__":{"model":"openai/gpt-5-mini","messages":[{"role":"user"}]}}');
    expect([status, body.error.param]).toEqual([400, 'model']);
  });
});
