/** Large requests without a credential, or for an unknown path, are rejected before their body is sent. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';

const CHAT = '/v1/chat/completions';
const LARGE = JSON.stringify({ model: 'x'.repeat(24_000_000), messages: [{ role: 'user', content: 'Hello' }] });

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

describe('a model name of 24 MB', () => {
  test('gets 401 without a credential', async () => {
    expect((await world.send('POST', CHAT, { body: LARGE })).status).toBe(401);
  });

  test.each(['/v1/chat/completions', '/v1/responses', '/v1/embeddings'])('gets 400 with a key at %s', async (route) => {
    const body = LARGE.replace('"messages"', '"input":"Hello","messages"');
    const { status, body: answer } = await world.send('POST', route, {
      body,
      headers: { authorization: `Bearer ${account.apiKey}` },
    });
    expect([status, answer.error.param]).toEqual([400, 'model']);
  });
});

test('rejects eight million objects with 400 before they are parsed', async () => {
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const { status, body } = await world.send('POST', CHAT, { body: `[${'{},'.repeat(8_000_000)}{}]`, headers });
  expect([status, body.error.type]).toEqual([400, 'invalid_request_error']);
  expect(body.message).toContain('objects, arrays and fields');
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
