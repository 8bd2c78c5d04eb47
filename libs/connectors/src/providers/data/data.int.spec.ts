import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { DataCall, DataResponse, UpstreamError } from '#application';
import { respondWithJson, type StubHandler, StubServer } from '../../../../testing/src/servers/stub-server.ts';
import { ProviderHttp } from '../../http/provider-http.ts';
import { CredentialRedactor } from '../../http/redaction.ts';
import { createExaProvider } from '../exa/index.ts';
import type { CredentialLocation } from '../provider.ts';
import { createDataProvider } from './index.ts';

const SECRET = 'sk-live/7F+q8Z=secret';

const server = new StubServer();
let http: ProviderHttp;
let url: string;
beforeAll(async () => {
  url = await server.listen();
  http = new ProviderHttp(url, { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 }, SECRET);
});
afterAll(async () => {
  await http.close();
  await server.close();
});
beforeEach(() => {
  server.requests.length = 0;
});

const vendor = (credential?: CredentialLocation) => ({ slug: 'v', protocol: 'data', baseUrl: url, credential });
const call = (more: Partial<DataCall> = {}): DataCall => ({
  method: 'POST',
  path: '/search',
  query: [],
  body: { q: 'coin' },
  headers: {},
  isFile: false,
  isBilledAfterDisconnect: true,
  signal: new AbortController().signal,
  ...more,
});
const get: Partial<DataCall> = { method: 'GET', body: undefined };
const file = { ...get, isFile: true };

function ask(answer: StubHandler, more?: Partial<DataCall>, place?: CredentialLocation): Promise<DataResponse> {
  server.handler = answer;
  return createDataProvider({ http, credential: SECRET }, vendor(place)).data(call(more));
}

async function failing(answer: StubHandler, more?: Partial<DataCall>): Promise<UpstreamError> {
  return ask(answer, more).then(
    () => {
      throw new Error('the call succeeded');
    },
    (failure: UpstreamError) => failure,
  );
}

async function bytesOf({ bytes }: DataResponse): Promise<Buffer> {
  if (bytes instanceof Uint8Array) return Buffer.from(bytes);
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}

const sends =
  (type: string, ...pieces: (string | Uint8Array)[]): StubHandler =>
  (response) => {
    response.writeHead(200, { 'content-type': type, 'x-request-id': 'v-1' });
    const next = () => {
      const piece = pieces.shift();
      if (piece === undefined) response.end();
      else response.write(piece, () => setImmediate(next));
    };
    next();
  };

describe('a data lookup', () => {
  test('sends its body, its own headers and the credential, and no other headers except standard ones', async () => {
    await ask(respondWithJson({}), { headers: { 'x-fields': 'name' } });
    const [asked] = server.requests;
    expect([asked?.line, asked?.body]).toEqual(['POST /search', '{"q":"coin"}']);
    expect(asked?.headers).toEqual({
      accept: '*/*',
      'user-agent': 'Countinghouse/1',
      'x-fields': 'name',
      authorization: `Bearer ${SECRET}`,
      'content-type': 'application/json',
      'content-length': '12',
      host: url.slice(7),
      connection: 'keep-alive',
    });
  });

  test.each<[CredentialLocation, string, object]>([
    [{ in: 'query', name: 'key' }, `&key=${encodeURIComponent(SECRET)}`, {}],
    [{ in: 'header', name: 'x-api-key' }, '', { 'x-api-key': SECRET }],
    [{ in: 'header', name: 'authorization', prefix: 'Token ' }, '', { authorization: `Token ${SECRET}` }],
  ])('sends the credential in the configured location: %j', async (place, search, headers) => {
    const query = [
      ['a', 'b&c=d'],
      ['a', 'ü #'],
      ...(place.in === 'query' ? ([['KEY', 'theirs']] as const) : []),
    ] as const;
    await ask(respondWithJson({}), { ...get, query }, place);
    expect(server.requests[0]?.line).toBe(`GET /search?a=b%26c%3Dd&a=%C3%BC+%23${search}`);
    expect(server.requests[0]?.headers).toMatchObject(headers);
    expect(server.requests[0]?.body).toBe('');
  });

  test('sends the credential to Exa in the header that its protocol defines', async () => {
    server.handler = respondWithJson({ results: [] });
    await createExaProvider({ http, credential: SECRET }).data(call());
    expect(server.requests[0]?.headers['x-api-key']).toBe(SECRET);
  });
});

describe('a response', () => {
  test('is returned unchanged, with its id', async () => {
    const written = '{ "requestId": "e-1",\n "big": 12345678901234567890, "text": "ü\\n" }';
    const answer = await ask(respondWithJson(written));
    expect([answer.kind, answer.status, answer.vendorId]).toEqual(['data', 200, 'e-1']);
    expect((await bytesOf(answer)).toString()).toBe(written);
  });

  test('is returned with its media type and its id if it is a file', async () => {
    const bytes = Buffer.from(Array.from({ length: 9_000 }, (_, i) => i % 251));
    const answer = await ask(
      sends('image/tiff', bytes.subarray(0, 10), bytes.subarray(10, 11), bytes.subarray(11)),
      file,
    );
    expect(answer).toMatchObject({ kind: 'file', mediaType: 'image/tiff', vendorId: 'v-1' });
    expect(await bytesOf(answer)).toEqual(bytes);
  });

  test('is read at most halfway if its reader stops after the first chunk of a large file', async () => {
    const [pieces, size] = [1_024, 64 * 1024];
    let sent = 0;
    const source = function* () {
      for (; sent < pieces; sent++) yield Buffer.alloc(size);
    };
    const hungUp = Promise.withResolvers<void>();
    const answer = await ask((response) => {
      response.writeHead(200, { 'content-type': 'image/tiff' }).on('close', hungUp.resolve);
      Readable.from(source(), { highWaterMark: 1 }).pipe(response);
    }, file);
    for await (const _ of answer.bytes as AsyncIterable<Uint8Array>) break;
    await hungUp.promise;
    expect(sent).toBeLessThan(pieces / 2);
  });

  test.each<[string, StubHandler, Partial<DataCall>]>([
    ['invalid JSON', sends('text/html', '<html>'), {}],
    ['an empty body', sends('application/json'), {}],
    ['a body above the limit', sends('application/json', `"${'x'.repeat(9 * 1024 * 1024)}"`), {}],
    ['JSON instead of a file', respondWithJson({ error: 'x' }), file],
    ['a file that a browser would execute', sends('image/svg+xml', '<svg onload="alert(1)"/>'), file],
    [
      'half a body',
      (response) => void response.writeHead(200, { 'content-length': 9 }).write('{', () => response.destroy()),
      {},
    ],
    ['a closed connection', (response) => void response.destroy(), {}],
    ['a closed connection after a GET', (response) => void response.destroy(), get],
  ])('counts as a failure that may be invoiced: %s', async (_, answer, more) => {
    expect(await failing(answer, more)).toMatchObject({ deliveredText: '' });
  });
});

describe('an error response', () => {
  test.each<[number, unknown, string, string | RegExp]>([
    [400, { error: { message: 'pageSize is too large' } }, 'invalid_request', 'pageSize is too large'],
    [422, { detail: [{ loc: ['body'], msg: 'field required' }] }, 'invalid_request', 'field required'],
    [
      404,
      { status: 404, error: { type: 'not_found', message: 'No records were found' } },
      'invalid_request',
      /No records/,
    ],
    [404, '<html>', 'invalid_request', /no results/],
    [
      400,
      { error: { status: 'INVALID', message: 'API key not valid.' } },
      'upstream_error',
      'The provider does not serve this gateway',
    ],
    [422, { detail: 'Insufficient balance of acme' }, 'upstream_error', 'The provider does not serve this gateway'],
    [404, { message: 'Your API key of acme has no credits' }, 'invalid_request', 'The provider found no results'],
    [404, '{"message": "half \\ud800 of it"}', 'invalid_request', 'half \ufffd of it'],
    [401, { message: 'No' }, 'upstream_unavailable', /unavailable/],
    [403, { message: 'Forbidden' }, 'upstream_unavailable', /unavailable/],
    [
      403,
      { error: { status: 'PERMISSION_DENIED', message: 'Invalid API key' } },
      'upstream_unavailable',
      /unavailable/,
    ],
    [402, { message: 'Pay' }, 'upstream_unavailable', /currently unavailable/],
    [403, { message: 'No' }, 'upstream_error', /status 403/],
    [302, {}, 'upstream_error', /status 302/],
    [429, {}, 'rate_limited', /limiting/],
    [500, {}, 'upstream_error', /status 500/],
    [503, {}, 'upstream_unavailable', /unavailable/],
    [504, {}, 'timeout', /too long/],
    [400, { errors: [{ details: 'x'.repeat(5_000) }] }, 'invalid_request', /^x{499}…$/],
  ])('%d with %j is reported as %s', async (status, body, code, message) => {
    const failure = await failing(respondWithJson(body as object, status));
    expect(failure).toMatchObject({ code, status, deliveredText: undefined });
    expect(failure.publicMessage).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
  });

  test.each<[string, object | string]>([
    ['unescaped', { message: `What is ${SECRET}?` }],
    ['with escaped slashes', `{"message": "What is ${SECRET.replaceAll('/', '\\/')}?"}`],
    ['with escaped punctuation', '{"message": "What is sk-live\\u002F7F\\u002bq8Z\\u003dsecret?"}'],
  ])('is reported with asterisks instead of the credential %s', async (_, body) => {
    const failure = await failing(respondWithJson(body, 422));
    expect(failure.publicMessage).toBe(`What is ${'*'.repeat(SECRET.length)}?`);
  });
});

const ECHOES: readonly [string, string][] = [
  ['unencoded', SECRET],
  ['percent-encoded', encodeURIComponent(SECRET)],
  ['percent-encoded in lower case', 'sk-live%2f7F%2bq8Z%3dsecret'],
  ['in hexadecimal', Buffer.from(SECRET).toString('hex')],
  ['in base64', Buffer.from(SECRET).toString('base64')],
  ['in base64 after a name', Buffer.from(`user:${SECRET}`).toString('base64')],
  ['in base64url', Buffer.from(`${SECRET}:x`).toString('base64url')],
];

describe('the credential of the operator is masked', () => {
  const secretPart = (text: string) => ECHOES.some(([, each]) => text.includes(each)) || text.includes('live/7F');

  test.each([
    ...ECHOES,
    ['with escaped slashes', SECRET.replaceAll('/', '\\/')],
    ['with escaped punctuation', 'sk-live\\u002F7F\\u002bq8Z\\u003dsecret'],
  ])('in JSON, %s', async (_, echo) => {
    const answer = await ask(respondWithJson(`{"next": "https://v.example/?key=${echo}", "n": 1}`));
    const text = (await bytesOf(answer)).toString();
    expect(text).toContain('*****');
    expect(secretPart(text) || secretPart(JSON.stringify(JSON.parse(text)))).toBe(false);
    expect(JSON.parse(text).n).toBe(1);
  });

  test.each(ECHOES)('in a file, %s, across chunk boundaries', async (_, echo) => {
    const whole = Buffer.from(`\x00head ${echo} tail ${echo}\xff`, 'latin1');
    for (let at = 1; at < whole.length; at += 5) {
      const answer = await ask(sends('application/octet-stream', whole.subarray(0, at), whole.subarray(at)), file);
      const bytes = await bytesOf(answer);
      expect([at, bytes.length, secretPart(bytes.toString('latin1'))]).toEqual([at, whole.length, false]);
    }
  });

  test('in the id of a response, which events store', async () => {
    const answer = await ask((response) => response.writeHead(200, { 'x-request-id': `of-${SECRET}` }).end('{}'));
    expect(answer.vendorId).toBe(`of-${'*'.repeat(SECRET.length)}`);
  });

  test('only if it is long enough to be secret', () => {
    expect(new CredentialRedactor('sandbox').redactText('a sandbox')).toBe('a sandbox');
  });
});
