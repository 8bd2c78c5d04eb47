/** What every answer has in common, whatever was asked. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Answer, type TestAccount, World } from '#testing';

const CHAT = '/v1/chat/completions';
const UUID = /^[0-9a-f-]{36}$/;

let world: World;
let account: TestAccount;
beforeAll(async () => {
  world = await World.open();
  account = await world.account();
});
afterAll(() => world.close());

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
  ])('%s %s is refused with the methods that are allowed, before its body is read', async (method, route, allow) => {
    const body = method === 'GET' ? undefined : '{"broken';
    const { status, headers, body: answer } = await world.send(method, route, { body });
    expect([status, headers.get('allow')]).toEqual([405, allow]);
    expect(answer.error.type).toBe('method_not_allowed');
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });

  test('a WebSocket, which no path has, is refused with 426, so that clients go on without', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const [answer] = (await once(request(`${world.api}/v1/responses`, { headers }).end(), 'response')) as [
      IncomingMessage,
    ];
    expect([answer.statusCode, answer.headers.allow]).toEqual([426, 'POST']);
    expect(answer.headers).toMatchObject({ upgrade: 'HTTP/1.1', connection: 'upgrade' });
    expect((await json(answer)) as object).toMatchObject({ status: 'error', error: { type: 'upgrade_required' } });
  });

  test('HEAD is refused without a body', async () => {
    const answer = await fetch(`${world.api}/accounts/create`, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('allow'), await answer.text()]).toEqual([405, 'POST', '']);
  });

  test('HEAD is answered wherever GET is', async () => {
    const answer = await fetch(`${world.api}/v1/models`, { method: 'HEAD' });
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });
});

describe('what is no HTTP request', () => {
  test.each<[string, number, string]>([
    ['this is no request', 400, 'invalid_request_error'],
    [`GET / HTTP/1.1\r\nHost: x\r\nx: ${'x'.repeat(20_000)}`, 431, 'headers_too_large'],
  ])('is refused in the shape of all errors: %.20s', async (request, status, type) => {
    const { hostname, port } = new URL(world.api);
    const socket = connect(Number(port), hostname);
    socket.setEncoding('utf8').write(`${request}\r\n\r\n`);
    let answer = '';
    socket.on('data', (piece) => {
      answer += piece;
    });
    await once(socket, 'close');
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const body = JSON.parse(answer.split('\r\n\r\n')[1] as string);
    expect(body).toMatchObject({ status: 'error', statusCode: status, error: { type } });
  });
});

test('OPTIONS without an origin is answered like that of a browser', async () => {
  const { status, text } = await world.send('OPTIONS', CHAT);
  expect([status, text]).toEqual([204, '']);
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
