/** Large requests without a payer: they cost the process next to nothing. */
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

/** What is answered to a request of which only the head is sent. */
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
  'without a credential, %s is 401 before its body is sent, and readable in a browser',
  async (route) => {
    const answer = await answerToHead(route, LARGE.length);
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(answer).toContain('access-control-allow-origin: *');
  },
);

test.each(['/nope', '/v1/images'])(
  'a path that is not there, such as %s, is 404 before its body is sent, and readable in a browser',
  async (route) => {
    const answer = await answerToHead(route, LARGE.length);
    expect(answer).toMatch(/^HTTP\/1.1 404 /);
    expect(answer).toContain('access-control-allow-origin: *');
    expect(answer).toContain(`"message":"There is no POST ${route}"`);
  },
);

describe('a model name of 24 MB', () => {
  test('without a credential is 401', async () => {
    expect((await world.send('POST', CHAT, { body: LARGE })).status).toBe(401);
  });

  test.each(['/v1/chat/completions', '/v1/responses', '/v1/embeddings'])('with a key is 400 at %s', async (route) => {
    const body = LARGE.replace('"messages"', '"input":"Hello","messages"');
    const { status, body: answer } = await world.send('POST', route, {
      body,
      headers: { authorization: `Bearer ${account.apiKey}` },
    });
    expect([status, answer.error.param]).toEqual([400, 'model']);
  });
});

test('eight million objects are 400 before they are parsed', async () => {
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const { status, body } = await world.send('POST', CHAT, { body: `[${'{},'.repeat(8_000_000)}{}]`, headers });
  expect([status, body.error.type]).toEqual([400, 'invalid_request_error']);
  expect(body.message).toContain('objects, lists and fields');
});

test.each([
  ['/accounts/create', 4],
  ['/credits/balance', 4],
  ['/topup/create/btc-lightning', 4],
  ['/keys', 64],
])('%s takes at most %i KiB', async (route, kib) => {
  const headers = { 'x-credit-id': account.creditId };
  const send = async (bytes: number) => {
    const body = JSON.stringify({ padding: 'x'.repeat(bytes - '{"padding":""}'.length) });
    return (await world.send('POST', route, { body, headers })).status;
  };
  expect(await send(kib * 1024 + 1)).toBe(413);
  expect(await send(kib * 1024)).not.toBe(413);
});

test('a body that must be read to find the account is refused when it names none', async () => {
  expect((await world.post('/credits/balance', {})).status).toBe(401);
  expect((await world.send('POST', '/keys', { body: '{"broken' })).status).toBe(401);
});
