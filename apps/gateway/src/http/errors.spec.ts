import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Answer, type TestAccount, World } from '#testing';

const CHAT = '/v1/chat/completions';
const MIB = 1024 * 1024;
const UUID = /^[0-9a-f-]{36}$/;

let world: World;
let account: TestAccount;
beforeAll(async () => {
  world = await World.open();
  account = await world.account();
});
afterAll(() => world.close());

const key = () => ({ authorization: `Bearer ${account.apiKey}` });

/** A request as bytes, for what no client library sends; the answer's head. */
async function raw(head: string): Promise<string> {
  const { port } = new URL(world.api);
  const socket = connect(Number(port), '127.0.0.1');
  socket.end(`${head.replaceAll('\n', '\r\n')}\r\n\r\n`);
  let text = '';
  socket.setEncoding('utf8').on('data', (piece) => {
    text += piece;
  });
  await once(socket, 'close');
  return text;
}

describe('every error', () => {
  const big = `{"model":"nope","messages":"${'x'.repeat(24 * MIB)}"}`;

  test.each<[string, number, () => Promise<Answer>]>([
    ['an unknown route', 404, () => world.get('/v1/nope')],
    ['another method of a known route', 405, () => world.get('/accounts/create')],
    ['a method that no route has', 405, () => world.send('PUT', '/credits/balance', { body: {} })],
    ['any method of an unknown route', 404, () => world.send('PUT', '/nope', { body: {} })],
    ['an address that cannot be decoded', 400, () => world.get('/v1/%zz')],
    ['a NUL in an address', 400, () => world.get('/topup/status/%00')],
    ['a missing credential', 401, () => world.send('POST', CHAT, { body: {} })],
    ['malformed JSON', 400, () => world.send('POST', CHAT, { body: '{"model"', headers: key() })],
    ['a body that is only white space', 400, () => world.send('POST', CHAT, { body: ' ', headers: key() })],
    [
      'a form',
      415,
      () => world.send('POST', CHAT, { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
    ],
    ['plain text', 415, () => world.send('POST', CHAT, { body: 'hello', headers: { 'content-type': 'text/plain' } })],
    ['too little money', 402, () => world.chat(account)],
    ['an unknown model', 404, () => world.chat(account, '', { model: 'nope' })],
    ['a large body that is wrong', 400, () => world.send('POST', CHAT, { body: big, headers: key() })],
    [
      'a name that is taken',
      409,
      () => world.send('POST', '/keys', { headers: { 'x-credit-id': account.creditId }, body: { name: 'Default' } }),
    ],
  ])('such as %s is answered with %i, in one shape for all readers', async (_, status, ask) => {
    const answer = await ask();
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('x-request-id')).toMatch(UUID);
    const { message, error } = answer.body;
    expect(answer.body).toEqual({
      status: 'error',
      statusCode: status,
      message: expect.any(String),
      error: {
        message,
        type: expect.stringMatching(/^[a-z_]+$/),
        code: status,
        param: error.param,
        metadata: expect.objectContaining({ error_type: expect.stringMatching(/^[a-z_]+$/) }),
      },
    });
    expect(error.param === null || typeof error.param === 'string').toBe(true);
    expect(message).not.toBe('');
  });

  test.each([
    ['a body beyond 25 MiB', 26 * MIB, 413],
    ['a body one byte beyond 25 MiB', 25 * MIB + 1, 413],
  ])('such as %s is told before the body has come', async (_, bytes, status) => {
    const answer = await raw(
      `POST ${CHAT} HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: ${bytes}`,
    );
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/im);
    expect(answer).toContain('"type":"payload_too_large","code":413');
  });

  test('is another request, with another id', async () => {
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => (await world.get('/nope')).headers.get('x-request-id')),
    );
    expect(new Set(ids).size).toBe(5);
  });
});

describe('a known path with another method', () => {
  test.each([
    ['GET', '/accounts/create', 'POST'],
    ['DELETE', CHAT, 'POST'],
    ['PUT', '/chat/completions', 'POST'],
    ['POST', '/v1/models', 'GET, HEAD'],
    ['POST', '/v1/models/openai/gpt-5-mini', 'GET, HEAD'],
    ['PATCH', '/keys', 'GET, HEAD, POST'],
    ['PUT', '/keys/x', 'GET, HEAD, PATCH, DELETE'],
    ['POST', '/topup/status/x', 'GET, HEAD'],
    ['GET', '/topup/create/x', 'POST'],
    ['POST', '/health/live', 'GET, HEAD'],
  ])('%s %s is told that it takes only others, before its body is read', async (method, route, allow) => {
    const body = method === 'GET' ? undefined : '{"broken';
    const { status, headers, body: answer } = await world.send(method, route, { body });
    expect([status, headers.get('allow')]).toEqual([405, allow]);
    expect(answer.error.type).toBe('method_not_allowed');
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });

  test('HEAD is told so without a body', async () => {
    const answer = await fetch(`${world.api}/accounts/create`, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('allow'), await answer.text()]).toEqual([405, 'POST', '']);
  });

  test('HEAD is answered wherever GET is', async () => {
    const answer = await fetch(`${world.api}/v1/models`, { method: 'HEAD' });
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });
});

describe('every answer', () => {
  test.each<[string, () => Promise<Answer>]>([
    ['a list of models', () => world.get('/v1/models')],
    ['a new account', () => world.send('POST', '/accounts/create')],
    ['a sign of life', () => world.get('/health/live')],
    ['a balance', () => world.post('/credits/balance', undefined, account)],
    ['a refusal', () => world.chat(account)],
    ['a stream', async () => world.chat(await world.account(1.05), '', { stream: true })],
  ])('such as %s carries its request id and lets browsers read it', async (_, ask) => {
    const { headers } = await ask();
    expect(headers.get('x-request-id')).toMatch(UUID);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    const exposed = headers.get('access-control-expose-headers')?.split(', ');
    expect(exposed).toEqual(
      expect.arrayContaining(['x-request-id', 'www-authenticate', 'payment-receipt', 'ehbp-response-nonce']),
    );
  });
});

describe('a browser', () => {
  test.each([CHAT, '/keys/x', '/accounts/create', '/nope'])(
    'may ask %s from anywhere, with every header that clients send',
    async (route) => {
      const asked =
        'authorization,api-key,x-api-key,x-credit-id,x-query-source,x-private-model,ehbp-encapsulated-key,content-type';
      const { status, headers, text } = await world.send('OPTIONS', route, {
        headers: {
          origin: 'https://app.example',
          'access-control-request-method': 'PATCH',
          'access-control-request-headers': asked,
        },
      });
      expect([status, text]).toEqual([204, '']);
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(headers.get('x-request-id')).toMatch(UUID);
      expect(headers.get('access-control-allow-methods')?.split(', ')).toEqual(
        expect.arrayContaining(['GET', 'POST', 'PATCH', 'DELETE']),
      );
      const allowed = headers.get('access-control-allow-headers')?.split(', ');
      expect(allowed).toEqual(expect.arrayContaining(asked.split(',')));
    },
  );
});

describe('the health of a gateway', () => {
  test('is that it lives', async () => {
    const { status, body } = await world.get('/health/live');
    expect([status, body]).toEqual([200, { status: 'ok' }]);
  });

  test('is ready while its stores answer and its read models keep up', async () => {
    const { status, body } = await world.get('/health/ready');
    expect(status).toBe(200);
    expect(body).toEqual({
      status: 'ok',
      draining: false,
      checks: { postgres: true, event_store: true, projector: true, projector_lag_ms: expect.any(Number) },
    });
    expect(body.checks.projector_lag_ms).toBeGreaterThanOrEqual(0);
  });
});
