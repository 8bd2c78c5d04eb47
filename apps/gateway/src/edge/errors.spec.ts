/** Every error on every surface: its status, its one shape for all readers, and that nobody pays for it. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Answer, type TestAccount, World } from '#testing';

const MIB = 1024 * 1024;
const UUID = /^[0-9a-f-]{36}$/;
const GPT = 'openai/gpt-5-mini';
const LARGE = 'openai/text-embedding-3-large';

let world: World;
let rich: TestAccount;
let poor: TestAccount;
beforeAll(async () => {
  world = await World.open({ UPSTREAM_TOTAL_TIMEOUT_MS: '4000', UPSTREAM_IDLE_TIMEOUT_MS: '4000' });
  rich = await world.account(105);
  poor = await world.account();
});
afterAll(() => world.close());

type Headers = Readonly<Record<string, string>>;
const bearer = ({ apiKey }: TestAccount): Headers => ({ authorization: `Bearer ${apiKey}` });

/** The shape that the specification's readers, OpenAI's clients and OpenRouter's strict ones find their error in. */
function expectError(answer: Answer, status: number, type: string, param?: string | null): void {
  expect([answer.status, answer.body?.error?.type]).toEqual([status, type]);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.headers.get('x-request-id')).toMatch(UUID);
  const { message, error } = answer.body;
  expect(answer.body).toEqual({
    status: 'error',
    statusCode: status,
    message: expect.stringMatching(/./),
    error: {
      message,
      type,
      code: status,
      param: param === undefined ? error.param : param,
      metadata: expect.objectContaining({ error_type: expect.stringMatching(/^[a-z_]+$/) }),
    },
  });
  expect(error.param === null || typeof error.param === 'string').toBe(true);
}

/** A request as bytes, for what no client library sends; the answer's text. */
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

interface Surface {
  readonly route: string;
  readonly model: string;
  readonly body: (words: string) => Readonly<Record<string, unknown>>;
  /** What costs more than a cent. */
  readonly dear: Readonly<Record<string, unknown>>;
}

const chat = (route: string): Surface => ({
  route,
  model: GPT,
  body: (content) => ({ model: GPT, messages: [{ role: 'user', content }] }),
  dear: { max_tokens: 100_000 },
});
const responses = (route: string): Surface => ({
  route,
  model: GPT,
  body: (input) => ({ model: GPT, input }),
  dear: { max_output_tokens: 100_000 },
});
const embeddings = (route: string): Surface => ({
  route,
  model: LARGE,
  body: (input) => ({ model: LARGE, input }),
  dear: { input: Array(20).fill(Array(8_000).fill(1)) },
});

/** Whatever is paid for, at both of its addresses. */
const SURFACES = [
  chat('/v1/chat/completions'),
  chat('/chat/completions'),
  responses('/v1/responses'),
  responses('/responses'),
  embeddings('/v1/embeddings'),
  embeddings('/embeddings'),
];

interface Sent {
  readonly body?: unknown;
  readonly headers?: Headers;
  readonly method?: string;
}

const HELLO = '[[sandbox tokens=2]]';
const good = (surface: Surface, more: object = {}) => ({ ...surface.body(HELLO), ...more });

async function newKey(more: object): Promise<{ readonly id: string; readonly key: string }> {
  const headers = { 'x-credit-id': rich.creditId };
  const { body } = await world.send('POST', '/keys', {
    headers,
    body: { name: crypto.randomUUID().slice(0, 25), ...more },
  });
  return { id: body.data._id, key: body.data.api_key };
}

/** Of no use any more. */
const KEYS: Readonly<Record<string, () => Promise<string>>> = {
  revoked: async () => {
    const { id, key } = await newKey({});
    await world.send('DELETE', `/keys/${id}`, { headers: { 'x-credit-id': rich.creditId } });
    return key;
  },
  expired: async () => {
    const expire_at = new Date(Date.now() + 1_000).toISOString();
    const { key } = await newKey({ expire_at });
    await world.until(async () => new Date().toISOString() > expire_at);
    return key;
  },
  limited: async () => (await newKey({ usage_limit_usd: 0.01 })).key,
};

type Refusal = readonly [
  name: string,
  status: number,
  type: string,
  param: string | null | undefined,
  sent: (surface: Surface) => Sent | Promise<Sent>,
];

const INVALID = 'invalid_request_error';
const STRANGER = 'authentication_error';
const made = new Map<string, Promise<string>>();
/** Made once, whoever needs it. */
async function withKey(kind: string): Promise<Headers> {
  const key = made.get(kind) ?? (KEYS[kind] as () => Promise<string>)();
  made.set(kind, key);
  return { 'x-api-key': await key };
}

const REFUSED: readonly Refusal[] = [
  ['malformed JSON', 400, INVALID, undefined, () => ({ body: '{"model"' })],
  ['white space', 400, INVALID, undefined, () => ({ body: ' ' })],
  ['a list', 400, INVALID, null, () => ({ body: [] })],
  ['nothing', 400, INVALID, undefined, () => ({})],
  ['no model', 400, INVALID, 'model', (surface) => ({ body: good(surface, { model: undefined }) })],
  ['a model that is no name', 400, INVALID, 'model', (surface) => ({ body: good(surface, { model: 7 }) })],
  ['an unknown model', 404, INVALID, 'model', (surface) => ({ body: good(surface, { model: 'nope' }) })],
  [
    'a variant that there is not',
    404,
    INVALID,
    'model',
    (surface) => ({ body: good(surface, { model: `${surface.model}:thinking` }) }),
  ],
  [
    'a model of another kind',
    400,
    INVALID,
    'model',
    (surface) => ({ body: good(surface, { model: surface.model === GPT ? LARGE : GPT }) }),
  ],
  [
    'no endpoint that keeps nothing',
    404,
    INVALID,
    'provider',
    (surface) => ({ body: good(surface, { provider: { zdr: true } }) }),
  ],
  [
    'no endpoint that is allowed',
    404,
    INVALID,
    'provider',
    (surface) => ({ body: good(surface, { provider: { only: ['nobody'] } }) }),
  ],
  [
    'a wish that is none',
    400,
    INVALID,
    'provider.sort',
    (surface) => ({ body: good(surface, { provider: { sort: 'luck' } }) }),
  ],
  ['no credential', 401, STRANGER, null, (surface) => ({ body: good(surface), headers: {} })],
  [
    'a credential of another scheme',
    401,
    STRANGER,
    null,
    (surface) => ({ body: good(surface), headers: { authorization: 'Basic eDp5' } }),
  ],
  [
    'an unknown key',
    401,
    STRANGER,
    null,
    (surface) => ({ body: good(surface), headers: { authorization: 'Bearer sk-unknown' } }),
  ],
  [
    'a revoked key',
    401,
    STRANGER,
    null,
    async (surface) => ({ body: good(surface), headers: await withKey('revoked') }),
  ],
  [
    'an expired key',
    401,
    STRANGER,
    null,
    async (surface) => ({ body: good(surface), headers: await withKey('expired') }),
  ],
  [
    'an account that is not there',
    401,
    STRANGER,
    null,
    (surface) => ({ body: good(surface), headers: { 'x-credit-id': crypto.randomUUID() } }),
  ],
  [
    'an account that cannot be',
    401,
    STRANGER,
    null,
    (surface) => ({ body: good(surface), headers: { 'x-credit-id': 'me' } }),
  ],
  [
    'too little money',
    402,
    'insufficient_balance',
    null,
    (surface) => ({ body: good(surface), headers: bearer(poor) }),
  ],
  [
    'a key that may not spend as much',
    402,
    'key_limit_exceeded',
    null,
    async (surface) => ({ body: good(surface, surface.dear), headers: await withKey('limited') }),
  ],
  ['another method', 405, 'method_not_allowed', null, (surface) => ({ body: good(surface), method: 'PUT' })],
  [
    'a form',
    415,
    'unsupported_media_type',
    null,
    () => ({ body: 'a=b', headers: { ...bearer(rich), 'content-type': 'application/x-www-form-urlencoded' } }),
  ],
  [
    'plain text',
    415,
    'unsupported_media_type',
    null,
    () => ({ body: 'hello', headers: { ...bearer(rich), 'content-type': 'text/plain' } }),
  ],
  [
    'an Idempotency-Key that is none',
    400,
    INVALID,
    'Idempotency-Key',
    (surface) => ({ body: good(surface), headers: { ...bearer(rich), 'idempotency-key': 'x'.repeat(256) } }),
  ],
];

describe.each(SURFACES)('$route refuses, before anything is held,', (surface) => {
  const { route } = surface;

  test.each(REFUSED)('%s: %i', async (_, status, type, param, sentTo) => {
    const { method = 'POST', headers = bearer(rich), body } = await sentTo(surface);
    const before = [await world.facts(), (await world.get('/queries/history', rich)).body.pagination.total];
    const answer = await world.send(method, route, { headers, body });
    expectError(answer, status, type, param);
    if (status === 402) expect(answer.body.message).toMatch(/Insufficient balance|limit/);
    if (status === 405) expect(answer.headers.get('allow')).toBe('POST');
    expect([await world.facts(), (await world.get('/queries/history', rich)).body.pagination.total]).toEqual(before);
  });

  test.each([
    ['26 MiB', 26 * MIB],
    ['one byte more than 25 MiB', 25 * MIB + 1],
  ])('a body of %s: 413, told before it has come', async (_, bytes) => {
    const answer = await raw(
      `POST ${route} HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: ${bytes}`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/im);
    expect(answer).toContain('"type":"payload_too_large","code":413');
  });

  test('a large body that is wrong: 400, for what is wrong with it', async () => {
    const body = `{"model":"nope","input":"${'x'.repeat(24 * MIB)}"`;
    expectError(await world.send('POST', route, { body, headers: bearer(rich) }), 400, INVALID);
  });

  test('an Idempotency-Key of another request: 409, and serves the first one only', async () => {
    const headers = { ...bearer(rich), 'idempotency-key': crypto.randomUUID() };
    expect((await world.send('POST', route, { headers, body: good(surface) })).status).toBe(200);
    const before = await world.facts();
    const answer = await world.send('POST', route, { headers, body: good(surface, { user: 'another' }) });
    expectError(answer, 409, 'idempotency_key_reused', 'Idempotency-Key');
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(await world.facts()).toEqual(before);
  });
});

test('an Idempotency-Key of a request that runs is 409 on every surface, with the time to wait', async () => {
  const sent = SURFACES.map(({ route, body }) => ({
    route,
    body: body('[[sandbox tokens=2 latency=2000]]'),
    headers: { ...bearer(rich), 'idempotency-key': crypto.randomUUID() },
  }));
  const ask = () => Promise.all(sent.map(({ route, ...each }) => world.send('POST', route, each)));
  const open = async () => {
    const types = (await world.facts(rich)).map(({ type }) => type);
    return types.filter((type) => type === 'FundsHeld').length - types.filter((type) => /^Hold/.test(type)).length;
  };
  const first = ask();
  await world.until(async () => (await open()) === SURFACES.length);
  for (const answer of await ask()) {
    expectError(answer, 409, 'idempotency_in_progress', 'Idempotency-Key');
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
  }
  expect((await first).map(({ status }) => status)).toEqual(SURFACES.map(() => 200));
});

describe('a failure of the upstream', () => {
  test.each([
    ['400', 400, INVALID, 'invalid_request'],
    ['429', 429, 'rate_limit_error', 'rate_limited'],
    ['500', 502, 'upstream_error', 'upstream_error'],
    ['overloaded', 503, 'upstream_unavailable', 'upstream_unavailable'],
    ['refuse', 503, 'upstream_unavailable', 'upstream_unavailable'],
    ['timeout', 504, 'timeout', 'timeout'],
    ['malformed', 502, 'upstream_error', 'upstream_error'],
    ['cut', 502, 'upstream_error', 'upstream_error'],
  ])('by %s is %i on every surface, costs nothing, and is in the history', async (fault, status, type, code) => {
    const balance = await world.balance(rich);
    const answers = await Promise.all(
      SURFACES.map(({ route, body }) => world.post(route, body(`[[sandbox tokens=2 fault=${fault}]]`), rich)),
    );
    expect(await world.balance(rich)).toBe(balance);
    expect((await world.post('/credits/balance', undefined, rich)).body.held_usd).toBe(0);
    const { data } = (await world.get('/queries/history', rich)).body;
    for (const answer of answers) {
      expectError(answer, status, type, null);
      expect(answer.headers.get('retry-after')).toBe(fault === '429' ? '1' : null);
      const id = answer.headers.get('x-request-id');
      const record = data.find(({ request_id }: { request_id: string }) => request_id === id);
      expect(record).toMatchObject({ price_in_usd: 0, error_code: code });
    }
    const types = new Set(data.slice(0, answers.length).map((each: { query_type: string }) => each.query_type));
    expect(types).toEqual(new Set(['chat_completion', 'response', 'embedding']));
  });
});

describe('whatever is not paid for refuses', () => {
  const own = (account = rich): Headers => ({ 'x-credit-id': account.creditId });
  const keys = (body: object) => world.send('POST', '/keys', { headers: own(), body: { name: 'wrong', ...body } });
  const topup = (body: object) => world.post('/topup/create/btc-lightning', body, rich);
  const history = (query: string, headers = bearer(rich)) =>
    world.send('GET', `/queries/history?${query}`, { headers });
  const id = '0123456789abcdef01234567';
  const unknown = { 'x-credit-id': crypto.randomUUID() };

  test.each<[string, string, number, string, string | null | undefined, () => Promise<Answer>]>([
    ['an address', 'that nobody has', 404, 'not_found', null, () => world.get('/v1/nope')],
    ['an address', 'that nobody has, by another method', 404, 'not_found', null, () => world.send('PUT', '/nope')],
    ['an address', 'that cannot be decoded', 400, INVALID, undefined, () => world.get('/v1/%zz')],
    ['an address', 'with a NUL', 400, INVALID, null, () => world.get('/topup/status/%00')],
    [
      'an address',
      'that is too long',
      414,
      'address_too_long',
      null,
      () => world.get(`/topup/status/${'x'.repeat(500)}`),
    ],
    ['models', 'for an unknown one', 404, INVALID, 'model', () => world.get('/v1/models/openai/nope')],
    ['models', 'with another method', 405, 'method_not_allowed', null, () => world.post('/v1/models', {}, rich)],
    ['responses', 'for an unknown one', 404, INVALID, undefined, () => world.get('/v1/responses/resp_x', rich)],
    ['responses', 'to a stranger', 401, STRANGER, null, () => world.get('/v1/responses/resp_x')],
    [
      'responses',
      'to forget an unknown one',
      404,
      INVALID,
      undefined,
      () => world.send('DELETE', '/responses/resp_x', { headers: bearer(rich) }),
    ],
    [
      'responses',
      'to go on from an unknown one',
      404,
      INVALID,
      'previous_response_id',
      () => world.post('/v1/responses', { model: GPT, input: 'x', previous_response_id: 'resp_x' }, rich),
    ],
    ['keys', 'without an account', 401, STRANGER, null, () => world.get('/keys')],
    ['keys', 'to a key', 401, STRANGER, null, () => world.get('/keys', rich)],
    ['keys', 'for an unknown account', 401, STRANGER, null, () => world.send('GET', '/keys', { headers: unknown })],
    [
      'keys',
      'malformed JSON',
      400,
      INVALID,
      undefined,
      () => world.send('POST', '/keys', { headers: own(), body: '{' }),
    ],
    ['keys', 'no name', 400, INVALID, 'name', () => keys({ name: undefined })],
    ['keys', 'a name that is taken', 409, 'conflict', undefined, () => keys({ name: 'Default' })],
    ['keys', 'a period without a limit', 400, INVALID, undefined, () => keys({ reset_period: 'daily' })],
    ['keys', 'an unknown period', 400, INVALID, 'reset_period', () => keys({ usage_limit_usd: 1, reset_period: 'x' })],
    ['keys', 'an expiry that has passed', 400, INVALID, undefined, () => keys({ expire_at: '2020-01-01' })],
    ['keys', 'an expiry that is no date', 400, INVALID, 'expire_at', () => keys({ expire_at: 'soon' })],
    [
      'keys',
      'to tell of an unknown one',
      404,
      'not_found',
      null,
      () => world.send('GET', `/keys/${id}`, { headers: own() }),
    ],
    [
      'keys',
      'to change an unknown one',
      404,
      'not_found',
      null,
      () => world.send('PATCH', `/keys/${id}`, { headers: own(), body: { name: 'x' } }),
    ],
    [
      'keys',
      'to revoke an unknown one',
      404,
      'not_found',
      null,
      () => world.send('DELETE', `/keys/${id}`, { headers: own() }),
    ],
    [
      'keys',
      'to tell one account of those of another',
      404,
      'not_found',
      null,
      async () => {
        const { data } = (await world.send('GET', '/keys', { headers: own() })).body;
        return world.send('GET', `/keys/${data[0]._id}`, { headers: own(poor) });
      },
    ],
    ['top-ups', 'to a stranger', 401, STRANGER, null, () => world.post('/topup/create/btc-lightning', { amount: 5 })],
    [
      'top-ups',
      'by an unknown method',
      404,
      INVALID,
      'method',
      () => world.post('/topup/create/x', { amount: 5, currency: 'USD' }, rich),
    ],
    ['top-ups', 'in an unknown currency', 400, INVALID, 'currency', () => topup({ amount: 5, currency: 'EUR' })],
    ['top-ups', 'of no amount', 400, INVALID, 'amount', () => topup({ currency: 'USD' })],
    ['top-ups', 'for an unknown invoice', 404, 'not_found', null, () => world.get('/topup/status/nope')],
    ['the history', 'to a stranger', 401, STRANGER, null, () => world.get('/queries/history')],
    ['the history', 'from no date', 400, INVALID, 'start_date', () => history('start_date=soon')],
    ['the history', 'on no page', 400, INVALID, 'page', () => history('page=x')],
    ['the history', 'of a key to a key', 400, INVALID, 'api_key', () => history('api_key=sk-x')],
    ['the history', 'of all keys to an account', 400, INVALID, 'all_keys', () => history('all_keys=true', own())],
    ['the history', 'of a strange key', 400, INVALID, 'api_key', () => history('api_key=sk-x', own())],
    ['the balance', 'to a stranger', 401, STRANGER, null, () => world.post('/credits/balance', undefined)],
    ['the balance', 'of no account', 401, STRANGER, null, () => world.post('/credits/balance', { credit_id: 'x' })],
    [
      'the balance',
      'of an unknown account',
      401,
      STRANGER,
      null,
      () => world.post('/credits/balance', { credit_id: crypto.randomUUID() }),
    ],
    ['the balance', 'by another method', 405, 'method_not_allowed', null, () => world.get('/credits/balance', rich)],
  ])('%s %s: %i', async (_, __, status, type, param, ask) => {
    const before = await world.facts();
    expectError(await ask(), status, type, param);
    expect(await world.facts()).toEqual(before);
  });
});

describe('a limit', () => {
  type Step = readonly [within: boolean, param: string, ask: () => Promise<Answer>];
  const ask = (more: object) =>
    world.post('/v1/chat/completions', { ...chat('').body(HELLO), max_tokens: 2, ...more }, rich);
  const respond = (more: object) =>
    world.post('/v1/responses', { model: GPT, input: HELLO, max_output_tokens: 2, ...more }, rich);
  const embed = (input: unknown) => world.post('/v1/embeddings', { model: LARGE, input, dimensions: 4 }, rich);
  const key = (more: object) =>
    world.send('POST', '/keys', {
      headers: { 'x-credit-id': rich.creditId },
      body: { name: crypto.randomUUID().slice(0, 20), ...more },
    });
  const topup = (amount: number, currency: string) =>
    world.post('/topup/create/btc-lightning', { amount, currency }, rich);
  const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`tag${i}`, true]));
  const search = (max_results: unknown) => ask({ plugins: [{ id: 'web', engine: 'exa', max_results }] });

  const LIMITS: readonly (readonly [string, ...Step])[] = [
    ['128 choices', true, '', () => ask({ n: 128 })],
    ['129 choices', false, 'n', () => ask({ n: 129 })],
    ['no choices', false, 'n', () => ask({ n: 0 })],
    ['a temperature of 2', true, '', () => ask({ model: 'gpt-4o-mini', temperature: 2 })],
    ['a temperature of more than 2', false, 'temperature', () => ask({ temperature: 2.01 })],
    ['a temperature below 0', false, 'temperature', () => respond({ temperature: -0.01 })],
    ['a top_p of 1', true, '', () => respond({ top_p: 1 })],
    ['a top_p of more than 1', false, 'top_p', () => respond({ top_p: 1.01 })],
    ['no tokens', false, 'max_tokens', () => ask({ max_tokens: 0 })],
    ['no output tokens', false, 'max_output_tokens', () => respond({ max_output_tokens: 0 })],
    ['20 results', true, '', () => search(20)],
    ['21 results', false, 'max_results', () => search(21)],
    ['no results', false, 'max_results', () => search(0)],
    ['16 tags', true, '', () => respond({ metadata: tags(16) })],
    ['17 tags', false, 'metadata', () => respond({ metadata: tags(17) })],
    ['a tag that is an object', false, 'metadata', () => respond({ metadata: { tag: {} } })],
    ['8,191 tokens to embed', true, '', () => embed(Array(8_191).fill(1))],
    ['8,192 tokens to embed', false, 'input', () => embed(Array(8_192).fill(1))],
    ['2,048 inputs', true, '', () => embed(Array(2_048).fill('a'))],
    ['2,049 inputs', false, 'input', () => embed(Array(2_049).fill('a'))],
    ['a name of 1 character', true, '', () => key({ name: '1' })],
    ['a name of 25 characters', true, '', () => key({ name: 'n'.repeat(25) })],
    ['a name of 26 characters', false, 'name', () => key({ name: 'n'.repeat(26) })],
    ['an empty name', false, 'name', () => key({ name: '' })],
    ['a cap of a cent', true, '', () => key({ usage_limit_usd: 0.01 })],
    ['a cap of less than a cent', false, 'usage_limit_usd', () => key({ usage_limit_usd: 0.0099 })],
    ['0.1 USD over Lightning', true, '', () => topup(0.1, 'USD')],
    ['1,000 USD over Lightning', true, '', () => topup(1_000, 'USD')],
    ['less than 0.1 USD over Lightning', false, 'amount', () => topup(0.0999, 'USD')],
    ['more than 1,000 USD over Lightning', false, 'amount', () => topup(1_000.01, 'USD')],
    ['100 satoshis', true, '', () => topup(100, 'SATS')],
    ['1,000,000 satoshis', true, '', () => topup(1_000_000, 'SATS')],
    ['99 satoshis', false, 'amount', () => topup(99, 'SATS')],
    ['1,000,001 satoshis', false, 'amount', () => topup(1_000_001, 'SATS')],
  ];
  const outcome = (within: boolean) => LIMITS.filter(([, each]) => each === within);

  test.each(outcome(true))('takes %s', async (_, __, ___, ask) => {
    expect([200, 201]).toContain((await ask()).status);
  });

  test.each(outcome(false))('refuses %s with 400, and nothing comes of it', async (_, __, param, ask) => {
    const before = await world.facts();
    const answer = await ask();
    expectError(answer, 400, INVALID);
    expect(answer.body.error.param).toContain(param);
    expect(await world.facts()).toEqual(before);
  });

  test.each([
    ['100', 100],
    ['101', 100],
    ['1000000', 100],
    ['0', 1],
  ])('makes pages of %s records pages of %i', async (asked, size) => {
    const { status, body } = await world.get(`/queries/history?page_count=${asked}`, rich);
    expect([status, body.pagination.page_count]).toEqual([200, size]);
  });
});

test('what nobody expected is 500, in the same shape, and tells nothing of the inside', async () => {
  const database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
  const { rows } = await database.query("select schemaname from pg_tables where tablename = 'queries'");
  const table = `${rows[0].schemaname}.queries`;
  await database.query(`alter table ${table} rename to gone`);
  try {
    const answer = await world.get('/queries/history', poor);
    expectError(answer, 500, 'server_error', null);
    expect(answer.body.message).toBe('Internal server error');
  } finally {
    await database.query(`alter table ${rows[0].schemaname}.gone rename to queries`);
    await database.end();
  }
});
