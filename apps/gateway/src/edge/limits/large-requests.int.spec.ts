/** Large requests without a credential, or for an unknown path, are rejected before their body is sent. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';

const CHAT = '/v1/chat/completions';
const createChat = (megabytes: number) =>
  JSON.stringify({ model: 'x'.repeat(megabytes * 1_000_000), messages: [{ role: 'user', content: 'Hello' }] });
const LARGE = createChat(24);

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(1.05);
});
afterAll(() => world.close());

/** Sends only the head of a request and returns the start of the response. */
async function answerToHead(route: string, bytes: number): Promise<string> {
  const { hostname, port } = new URL(world.api);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST ${route} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
  );
  const [first] = await once(socket, 'data');
  socket.destroy();
  return String(first);
}

test.each([CHAT, '/chat/completions', '/v1/responses', '/v1/embeddings'])(
  'responds with 401 to %s without a credential before the body is sent, readable in a browser',
  async (route) => {
    const answer = await answerToHead(route, LARGE.length);
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(answer).toContain('access-control-allow-origin: *');
  },
);

test.each(['/nope', '/v1/images'])(
  'responds with 404 to an unknown path such as %s before the body is sent, readable in a browser',
  async (route) => {
    const answer = await answerToHead(route, LARGE.length);
    expect(answer).toMatch(/^HTTP\/1.1 404 /);
    expect(answer).toContain('access-control-allow-origin: *');
    expect(answer).toContain(`"message":"POST ${route} not found"`);
  },
);

describe('a model name', () => {
  test('of 24 MB gets 401 without a credential', async () => {
    expect((await world.send('POST', CHAT, { body: LARGE })).status).toBe(401);
  });

  test.each([
    [24, '/v1/chat/completions'],
    [4, '/v1/responses'],
    [4, '/v1/embeddings'],
  ])('of %i MB gets 400 with a key at %s', async (megabytes, route) => {
    const body = createChat(megabytes).replace('"messages"', '"input":"Hello","messages"');
    const { apiKey } = await world.createAccount(1.05); // an account waits between large bodies
    const { status, body: answer } = await world.send('POST', route, {
      body,
      headers: { authorization: `Bearer ${apiKey}` },
    });
    expect([status, answer.error.param]).toEqual([400, 'model']);
  });
});

test('rejects two million objects with 400 before they are parsed', async () => {
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const { status, body } = await world.send('POST', CHAT, { body: `[${'{},'.repeat(2_000_000)}{}]`, headers });
  expect([status, body.error.type]).toEqual([400, 'invalid_request_error']);
  expect(body.message).toContain('objects and arrays');
});

describe('JSON of more than 256 KiB from an account that was never credited gets 402 before it is parsed', () => {
  const head = ['content-type: application/json', 'host: x'];
  const tooMuch = `{"broken ${'x'.repeat(256 * 1024)}`;
  const chunk = `${tooMuch.length.toString(16)}\r\n${tooMuch}\r\n`;

  test.each<[string, string, string]>([
    ['by its content-length', 'content-length: 300000', ''],
    ['by what has arrived of it', 'transfer-encoding: chunked', chunk],
  ])('%s, while more is awaited', async (_, length, sent) => {
    const poor = await world.createAccount();
    for (const route of [CHAT, '/v1/embeddings', '/v1/messages/count_tokens', '/v1/responses/input_tokens']) {
      const { hostname, port } = new URL(world.api);
      const socket = connect(Number(port), hostname);
      const lines = [`POST ${route} HTTP/1.1`, ...head, `authorization: Bearer ${poor.apiKey}`, length, '', ''];
      socket.on('error', () => {}).write(lines.join('\r\n') + sent);
      const [first] = await once(socket, 'data');
      socket.destroy();
      expect(String(first)).toMatch(/^HTTP\/1.1 402 /);
      expect(String(first)).toContain('Insufficient balance');
    }
  });

  test('but is read from an account that was credited, and a smaller body from every account', async () => {
    const poor = await world.createAccount();
    const body = (bytes: number) => ({
      model: 'openai/gpt-5-mini',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'counting '.repeat(bytes / 9) }],
    });
    const count = (bytes: number, by: TestAccount) => world.post('/v1/messages/count_tokens', body(bytes), by);
    expect((await count(300_000, poor)).status).toBe(402);
    expect((await count(300_000, account)).status).toBe(200);
    expect((await count(250_000, poor)).status).toBe(200);
  });
});

test.each([
  ['/accounts/create', 4],
  ['/credits/balance', 4],
  ['/topup/create/btc-lightning', 4],
  ['/keys', 64],
])('%s accepts at most %i KiB', async (route, kib) => {
  const headers = { 'x-credit-id': account.creditId };
  const send = async (bytes: number) => {
    const body = JSON.stringify({ padding: 'x'.repeat(bytes - '{"padding":""}'.length) });
    return (await world.send('POST', route, { body, headers })).status;
  };
  expect(await send(kib * 1024 + 1)).toBe(413);
  expect(await send(kib * 1024)).not.toBe(413);
});

test('rejects a request without a credential with 401, even if its body is malformed', async () => {
  expect((await world.post('/credits/balance', {})).status).toBe(401);
  expect((await world.send('POST', '/keys', { body: '{"broken' })).status).toBe(401);
});
