/**
 * No response to a caller with a credential may be stored by a cache, and no browser guesses the type of a response.
 */

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { sampleCases, type TestAccount, TestWorld } from '#testing';

interface Route {
  readonly method: string;
  readonly url: string;
}

/** Routes that anyone may cache, in every spelling of their paths. All other responses are private. */
const CACHEABLE = [
  '/v1/models',
  '/v1/models/*',
  '/v1/models/:id/endpoints',
  '/v1/models/:author/:slug/endpoints',
  '/models',
  '/models/*',
  '/models/:id/endpoints',
  '/models/:author/:slug/endpoints',
  '/v1/audio/models',
  '/api/v1/audio/models',
  '/audio/models',
  '/v1/audio/voices',
  '/api/v1/audio/voices',
  '/audio/voices',
  '/v1/data/endpoints',
  '/data/endpoints',
  '/topup/payment-methods',
  '/openapi.json',
  '/docs',
];
/** The credential of a file is in its URL, and only a private cache may store the file. */
const FILES = ['/v1/media/:id/:n', '/media/:id/:n'];
/** Parameters with which a cacheable route succeeds. */
const EXAMPLES: Readonly<Record<string, string>> = {
  ':id/endpoints': 'gpt-5-mini/endpoints',
  ':author/:slug': 'openai/gpt-5-mini',
  'models/*': 'models/gpt-5-mini',
};
/** Number of routes that each credential is presented to, unless all cases are tested. */
const SAMPLED_ROUTES = 8;
const CREDENTIALS = ['authorization', 'x-api-key', 'api-key', 'x-credit-id'];
const CHAT = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'Hello' }] };

let world: TestWorld;
let account: TestAccount;
const routes: Route[] = [];
beforeAll(async () => {
  subscribe('fastify.initialization', watch);
  world = await TestWorld.open({ ACCOUNTS_PER_HOUR: '100000', CHALLENGES_PER_MINUTE: '10000' });
  unsubscribe('fastify.initialization', watch);
  account = await world.createAccount(10.5);
});
afterAll(() => world.close());

function watch(message: unknown): void {
  const { fastify } = message as { fastify: FastifyInstance };
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, url: url === '*' ? '/unknown' : url });
  });
}

function toPath(url: string): string {
  const example = Object.entries(EXAMPLES).find(([part]) => url.includes(part));
  return (example ? url.replace(...example) : url).replace(/:\w+|\*/g, 'unknown');
}

async function ask({ method, url }: Route, headers: Record<string, string>): Promise<Response> {
  const init = ['GET', 'HEAD', 'OPTIONS'].includes(method) ? {} : { body: '{}' };
  const type = { 'content-type': 'application/json' };
  const response = await fetch(`${world.api}${toPath(url)}`, { method, headers: { ...type, ...headers }, ...init });
  await response.arrayBuffer();
  return response;
}

/** Returns the faults in the headers of a response that no cache may store. */
function findFaults({ headers }: { readonly headers: Headers }): readonly string[] {
  const vary = (headers.get('vary') ?? '').split(', ');
  return [
    ...(/^(private, )?no-store$/.test(headers.get('cache-control') ?? '') ? [] : ['may be stored']),
    ...CREDENTIALS.filter((name) => !vary.includes(name)).map((name) => `does not vary by ${name}`),
    ...(headers.get('x-content-type-options') === 'nosniff' ? [] : ['has no nosniff']),
  ];
}

describe('on every route', () => {
  const presented: Readonly<Record<string, () => Record<string, string>>> = {
    'a key': () => ({ authorization: `Bearer ${account.apiKey}` }),
    'a key in x-api-key': () => ({ 'x-api-key': account.apiKey }),
    'a key in api-key': () => ({ 'api-key': account.apiKey }),
    'a credit id': () => ({ 'x-credit-id': account.creditId }),
    'an unknown key': () => ({ authorization: 'Bearer sk-of-nobody' }),
    'an unknown credit id': () => ({ 'x-credit-id': '00000000-0000-4000-8000-000000000000' }),
    'another scheme': () => ({ authorization: 'Basic eDp5' }),
    'a proof that is not one': () => ({ authorization: `L402 ${'a'.repeat(22)}:${'0'.repeat(64)}` }),
    'an empty credential': () => ({ 'x-credit-id': '' }),
  };
  test.each(Object.entries(presented).map(([name, headers], i) => ({ name, headers, i })))(
    'a response to $name is stored by no cache',
    async ({ headers, i }) => {
      const faults: unknown[] = [];
      for (const route of sampleCases(routes, SAMPLED_ROUTES, i)) {
        const response = await ask(route, headers());
        const found = findFaults(response);
        if (found.length > 0) faults.push([route.method, route.url, response.status, found]);
      }
      expect(faults).toEqual([]);
      expect(routes.length).toBeGreaterThan(400);
    },
  );

  test('a response to an anonymous caller is stored only if it is the same for everyone', async () => {
    const [faults, cacheable]: [unknown[], Set<string>] = [[], new Set()];
    const byUrl = [...Map.groupBy(routes, ({ url }) => url)];
    const selected = byUrl.flatMap(([url, methods], i) =>
      CACHEABLE.includes(url) ? methods : sampleCases(methods, 1, i),
    );
    for (const route of selected) {
      const response = await ask(route, {});
      const found = findFaults(response);
      const mayBeStored = CACHEABLE.includes(route.url) && ['GET', 'HEAD'].includes(route.method);
      if (found.includes('has no nosniff') || (found.length > 0 && !mayBeStored))
        faults.push([route.method, route.url, response.status, found]);
      if (found.includes('may be stored')) cacheable.add(route.url);
      // A caller with an invalid credential must get its own response.
      if (mayBeStored && route.url.includes('models') && !route.url.includes('audio'))
        expect([route.url, response.headers.get('vary')]).toEqual([
          route.url,
          expect.stringContaining(CREDENTIALS.join(', ')),
        ]);
    }
    expect(faults).toEqual([]);
    expect([...cacheable].sort()).toEqual([...CACHEABLE].sort());
  });

  test('its errors are stored by no cache', async () => {
    for (const path of ['/v1/models/unknown', '/v1/data/endpoints?%00', '/v1/models?type=none', '/docs/unknown'])
      expect([path, findFaults(await ask({ method: 'GET', url: path }, {}))]).toEqual([path, []]);
  });
});

describe('a successful response', () => {
  const byKey = () => ({ authorization: `Bearer ${account.apiKey}` });
  const byId = () => ({ 'x-credit-id': account.creditId });
  const post = (route: string, body: object, headers: Record<string, string>) =>
    world.send('POST', route, { body, headers });
  test.each<[string, () => Promise<{ status: number; headers: Headers }>, number]>([
    ['a chat', () => post('/v1/chat/completions', CHAT, byKey()), 200],
    ['a stream of a chat', () => post('/v1/chat/completions', { ...CHAT, stream: true }, byKey()), 200],
    ['a stream of a message', () => post('/v1/messages', { ...CHAT, max_tokens: 9, stream: true }, byKey()), 200],
    [
      'a stream of a response',
      () => post('/v1/responses', { model: CHAT.model, input: 'a', stream: true }, byKey()),
      200,
    ],
    ['the keys with their secrets', () => world.send('GET', '/keys?show_key=true', { headers: byId() }), 200],
    ['a new key', () => post('/keys', { name: 'new' }, byId()), 201],
    ['the history', () => world.get(`/queries/history?credit_id=${account.creditId}`), 200],
    ['the wallet', () => world.getAutoTopup(account), 200],
    ['a balance', () => post('/credits/balance', { credit_id: account.creditId }, {}), 200],
    ['a new account', () => world.send('POST', '/accounts/create'), 201],
    ['a new invoice', () => post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, byKey()), 201],
    ['a challenge', () => post('/v1/images/generations', { model: 'openai/gpt-image-2', prompt: 'a' }, {}), 402],
    ['a list of models', () => world.get('/v1/models', account), 200],
  ])('with %s is stored by no cache', async (_, send, status) => {
    const response = await send();
    expect([response.status, findFaults(response)]).toEqual([status, []]);
  });

  test('with speech that is streamed is stored by no cache', async () => {
    const body = JSON.stringify({ model: 'openai/tts-1-hd', input: 'Hello' });
    const headers = { 'content-type': 'application/json', ...byKey() };
    const response = await fetch(`${world.api}/v1/audio/speech`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    expect([response.status, findFaults(response)]).toEqual([200, []]);
  });

  test('that is replayed is stored by no cache', async () => {
    const headers = { ...byKey(), 'idempotency-key': 'once' };
    for (const replayed of [null, 'true']) {
      const response = await post('/v1/chat/completions', { ...CHAT, stream: true }, headers);
      expect([response.headers.get('idempotent-replayed'), findFaults(response)]).toEqual([replayed, []]);
    }
  });

  test('with an invoice or its page, whose id is secret, is stored by no cache', async () => {
    const { body } = await post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, byKey());
    for (const route of ['/topup/status', '/topup/checkout']) {
      const response = await world.get(`${route}/${body.invoice_id}`);
      expect([response.status, findFaults(response)]).toEqual([200, []]);
    }
  });

  test('with a file may be stored by a private cache as long as its URL is valid', async () => {
    const path = await world.storeFile(Buffer.from('png'), 'image/png');
    const response = await world.get(path);
    expect([response.status, response.headers.get('cache-control')]).toEqual([
      200,
      expect.stringMatching(/^private, max-age=\d+$/),
    ]);
    expect(findFaults(await world.get(path, account))).toEqual([]); // a credential in addition to the signature
    for (const url of FILES) expect(findFaults(await ask({ method: 'GET', url }, {}))).toEqual([]);
  });
});

describe('where the public address', () => {
  async function sendAll(api: string): Promise<readonly (string | undefined)[]> {
    const heads = ['GET /health/live', 'GET /unknown', 'GET /%zz', 'POST /v1/chat/completions', 'CONNECT x.example:1'];
    const raw = ['nonsense', ...heads.map((head) => `${head} HTTP/1.1\nhost: x\ncontent-length: 0\nconnection: close`)];
    const answers = await Promise.all(
      [...raw, 'GET / HTTP/1.1\nhost: x\nexpect: nothing', `GET / HTTP/1.1\nx: ${'x'.repeat(20_000)}`].map((head) =>
        sendRaw(api, head),
      ),
    );
    for (const answer of answers) {
      expect(answer).toMatch(/^HTTP\/1\.1 [2-4]\d\d /);
      expect(answer).toMatch(/^x-content-type-options: nosniff\r$/im);
      expect(answer).toMatch(/^cache-control: no-store\r$/im);
    }
    expect(answers).toHaveLength(8);
    return answers.map((answer) => /^strict-transport-security: (.*)\r$/im.exec(answer)?.[1]);
  }

  test('has https, every response requires browsers to use https, even one to a malformed request', async () => {
    const gateway = await world.startGateway({ publicBaseUrl: 'https://api.example.org', audioPort: 0 });
    const { origin } = new URL(gateway.audioApi);
    for (const api of [gateway.api, origin]) expect(new Set(await sendAll(api))).toEqual(new Set(['max-age=31536000']));
    await gateway.close();
  });

  test('has no https, none does', async () => {
    expect(new Set(await sendAll(world.api))).toEqual(new Set([undefined]));
    const gateway = await world.startGateway({ publicBaseUrl: 'http://127.0.0.1:1' });
    expect(new Set(await sendAll(gateway.api))).toEqual(new Set([undefined]));
    await gateway.close();
  });
});

/** Sends a request head that no client library would send, and returns the response as text. */
async function sendRaw(api: string, head: string): Promise<string> {
  const socket = connect(Number(new URL(api).port), '127.0.0.1');
  socket.end(`${head.replaceAll('\n', '\r\n')}\r\n\r\n`);
  let text = '';
  socket.setEncoding('utf8').on('data', (piece) => {
    text += piece;
  });
  await once(socket, 'close');
  return text;
}
