/** What does not depend on the operation: methods, malformed requests, URLs, errors, CORS, and health checks. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { extendDelay, type TestAccount, type TestResponse, TestWorld } from '#testing';

const CHAT = '/v1/chat/completions';
const UUID = /^[0-9a-f-]{36}$/;

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  account = await world.createAccount();
});
afterAll(() => world.close());

describe('a known path', () => {
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
  ])('rejects %s %s with 405 and the allowed methods, even if the body is malformed', async (method, route, allow) => {
    const body = method === 'GET' ? undefined : '{"broken';
    const { status, headers, body: answer } = await world.send(method, route, { body });
    expect([status, headers.get('allow')]).toEqual([405, allow]);
    expect(answer.error).toMatchObject({
      type: 'method_not_allowed',
      message: `${method} ${route} is not supported; this path supports ${allow} only`,
    });
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });

  test('rejects a WebSocket upgrade with 426, so that clients fall back to HTTP', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const [answer] = (await once(request(`${world.api}/v1/responses`, { headers }).end(), 'response')) as [
      IncomingMessage,
    ];
    expect([answer.statusCode, answer.headers.allow]).toEqual([426, 'POST']);
    expect(answer.headers).toMatchObject({ upgrade: 'HTTP/1.1', connection: 'upgrade' });
    expect((await json(answer)) as object).toMatchObject({ status: 'error', error: { type: 'upgrade_required' } });
  });

  test('rejects HEAD with 405 and the allowed methods if it does not support GET', async () => {
    const answer = await fetch(`${world.api}/accounts/create`, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('allow'), await answer.text()]).toEqual([405, 'POST', '']);
  });

  test('supports HEAD if it supports GET', async () => {
    const answer = await fetch(`${world.api}/v1/models`, { method: 'HEAD' });
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });
});

describe('a malformed request', () => {
  const get = (path: string, ...headers: string[]) => [`GET ${path} HTTP/1.1`, ...headers].join('\r\n');
  const many = Array.from({ length: 2_500 }, (_, i) => `x${i}: 1`);

  test.each<[string, number, string, string]>([
    ['a sentence', 400, 'invalid_request_error', 'this is no request'],
    ['an unknown method', 400, 'invalid_request_error', 'BREW /tea HTTP/1.1\r\nHost: x'],
    ['another protocol', 400, 'invalid_request_error', '\x16\x03\x01\x02\x00'],
    ['without a host', 400, 'invalid_request_error', get('/v1/models')],
    ['for a proxy', 400, 'invalid_request_error', 'CONNECT x:1 HTTP/1.1\r\nHost: x'],
    [
      'with two lengths',
      400,
      'invalid_request_error',
      get('/', 'Host: x', 'Content-Length: 3', 'Transfer-Encoding: chunked'),
    ],
    ['with an unknown expectation', 417, 'expectation_failed', get('/v1/models', 'Host: x', 'Expect: tea')],
    ['with a header that is too long', 431, 'headers_too_large', get('/', 'Host: x', `x: ${'x'.repeat(20_000)}`)],
    ['with too many headers', 431, 'headers_too_large', get('/', 'Host: x', ...many)],
    ['to an address that is too long', 431, 'headers_too_large', get(`/${'x'.repeat(20_000)}`, 'Host: x')],
    [
      'a preflight for a path that cannot be decoded',
      400,
      'invalid_request_error',
      'OPTIONS /%zz HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: GET',
    ],
  ])('(%s) is rejected with %i in the common error format, readable in a browser', async (_, status, type, request) => {
    const answer = await raw(request);
    expect(answer.head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer.head).toMatch(/^x-request-id: [0-9a-f-]{36}\r?$/im);
    expect(answer.head).toMatch(/^access-control-allow-origin: \*\r?$/im);
    expect(answer.body).toMatchObject({ status: 'error', statusCode: status, error: { type } });
  });

  async function raw(request: string) {
    const { hostname, port } = new URL(world.api);
    const socket = connect(Number(port), hostname);
    socket.setEncoding('utf8').write(`${request}\r\n${request.includes('Host') ? 'Connection: close\r\n' : ''}\r\n`);
    let answer = '';
    socket.on('data', (piece) => {
      answer += piece;
    });
    socket.on('error', () => {}); // the gateway may close the socket while the test writes
    if (!request.includes('Host')) socket.end();
    await once(socket, 'close');
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    return { head, body: JSON.parse(body) };
  }
});

describe('a URL', () => {
  test.each<[string, string, unknown, number]>([
    ['GET', '/v1/models/', undefined, 200],
    ['GET', '/v1/models/openai/gpt-5-mini/', undefined, 200],
    ['POST', '/accounts/create/', undefined, 201],
    ['GET', '/topup/payment-methods/?x=1', undefined, 200],
    ['GET', '/accounts/create/', undefined, 405],
    ['POST', '/v1/chat/completions/', {}, 401],
  ])('reaches the same route with a trailing slash: %s %s', async (method, route, body, status) => {
    expect((await world.send(method, route, { body })).status).toBe(status);
  });

  test('that does not exist gets a short 404 without its query, which may contain secrets', async () => {
    const { status, text } = await world.get(`/nope/${'x'.repeat(400)}?api_key=sk-secret`);
    expect([status, text.length < 600]).toEqual([404, true]);
    expect(text).not.toContain('sk-secret');
  });
});

describe('an error', () => {
  test('has a message of at most 1,001 characters if it quotes a long value', async () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const model = 'x'.repeat(256);
    const answers = [
      await world.sendChat(account, '', { model }),
      await world.sendChat(account, '', { tools, tool_choice: { type: 'y'.repeat(256), name: 'x' } }),
      await world.get(`/v1/models/${'z'.repeat(80)}`),
    ];
    for (const { status, body } of answers) expect([status, body.message.length <= 1_001]).toEqual([status, true]);
  });

  test.each<[string, () => Promise<TestResponse>, RegExp]>([
    ['a chat', () => world.send('POST', CHAT, { body: {} }), /"Authorization: Bearer <API key>" or x-api-key$/],
    ['the keys', () => world.get('/keys', account), /x-credit-id$/],
    ['the wallet', () => world.get('/nwc-auto-topup', account), /x-credit-id$/],
    ['the balance', () => world.send('POST', '/credits/balance'), /x-credit-id, or credit_id in the body$/],
    ['the history', () => world.get('/queries/history'), /x-credit-id, or credit_id in the query$/],
    [
      'a response',
      () => world.get('/v1/responses/resp_x'),
      /x-api-key, or the credit id of the account as x-credit-id$/,
    ],
  ])('names the credentials to send if %s is requested without an accepted one', async (_, ask, named) => {
    const { status, body } = await ask();
    expect([status, body.message]).toEqual([401, expect.stringMatching(named)]);
  });
});

test('responds to OPTIONS without an Origin header with 204 and no body, as to a preflight', async () => {
  const { status, text } = await world.send('OPTIONS', CHAT);
  expect([status, text]).toEqual([204, '']);
});

describe('every response', () => {
  test.each<[string, () => Promise<TestResponse>]>([
    ['a list of models', () => world.get('/v1/models')],
    ['a new account', () => world.send('POST', '/accounts/create')],
    ['a health check', () => world.get('/health/live')],
    ['a balance', () => world.post('/credits/balance', undefined, account)],
    ['a rejection', () => world.sendChat(account)],
    ['a stream', async () => world.sendChat(await world.createAccount(1.05), '', { stream: true })],
  ])('such as %s has a request id, and a page of any origin can read all documented headers', async (_, ask) => {
    const { headers } = await ask();
    expect(headers.get('x-request-id')).toMatch(UUID);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    const exposed = headers.get('access-control-expose-headers')?.split(', ');
    const documented = Object.keys((await world.get('/openapi.json')).body.components.headers);
    expect(documented).toEqual(expect.arrayContaining(['x-request-id', 'x-books-behind', 'x-should-retry']));
    expect(exposed).toEqual(expect.arrayContaining(documented));
  });
});

describe('a browser', () => {
  test.each([CHAT, '/keys/x', '/accounts/create', '/nope'])(
    'may send requests to %s from any origin, with the headers that clients use',
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

describe('a gateway', () => {
  test('is reported as alive', async () => {
    const { status, body } = await world.get('/health/live');
    expect([status, body]).toEqual([200, { status: 'ok' }]);
  });

  test('reports draining once a shutdown has started, and serves requests during the drain delay', async () => {
    const DRAIN_DELAY_MS = 2_500;
    const gateway = await world.startGateway({ drainDelayMs: DRAIN_DELAY_MS });
    const drain = extendDelay(DRAIN_DELAY_MS);
    const closing = gateway.close();
    // The body is read at once: Node's fetch fails if a long one waits while its connection is closed.
    const ask = async (path: string) => {
      const response = await fetch(`${gateway.api}${path}`);
      return { response, body: await response.json() };
    };
    const [ready, models] = await Promise.all([ask('/health/ready'), ask('/v1/models')]);
    expect([ready.response.status, ready.body]).toMatchObject([503, { status: 'unavailable', draining: true }]);
    expect([models.response.status, models.response.headers.get('connection')]).toEqual([200, 'close']);
    drain.end();
    await closing;
    await expect(ask('/health/live')).rejects.toThrow();
  });

  test('is ready while its stores respond and its read models are current', async () => {
    let body: TestResponse['body'];
    await world.waitUntil(async () => {
      const ready = await world.get('/health/ready');
      body = ready.body;
      return ready.status === 200; // on a busy host, read models may lag for longer than the limit
    });
    expect(body).toEqual({
      status: 'ok',
      draining: false,
      checks: expect.objectContaining({
        postgres: { ok: true, required: true },
        event_store: { ok: true, required: true },
        caught_up: { ok: true, required: true, end: expect.any(Number), behind: {} },
        projector: { ok: true, required: false, lag_ms: expect.any(Number) },
        projections: expect.objectContaining({
          leading: true,
          positions: expect.objectContaining({ balances: expect.any(Number) }),
        }),
        workflows: expect.objectContaining({
          leading: expect.arrayContaining(['topups', 'hold-expiry']),
          standing_by: [],
        }),
      }),
    });
    expect(body.checks.projector.lag_ms).toBeGreaterThanOrEqual(0);
  });
});
