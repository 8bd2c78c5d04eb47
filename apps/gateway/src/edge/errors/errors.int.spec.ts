/** Errors of many routes: their status, their common format, and that they cost nothing. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Clock } from '#application';
import {
  extendDelay,
  sampleCases,
  sampleSize,
  shiftClock,
  type TestAccount,
  type TestResponse,
  TestWorld,
  timeOut,
} from '#testing';

const MIB = 1024 * 1024;
const UUID = /^[0-9a-f-]{36}$/;
const GPT = 'openai/gpt-5-mini';
const LARGE = 'openai/text-embedding-3-large';
const HELLO = '[[sandbox tokens=2]]';

let world: TestWorld;
let rich: TestAccount;
let poor: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  rich = await world.createAccount(105);
  poor = await world.createAccount();
});
afterAll(() => world.close());

type Kind = readonly [status: number, type: string];
const INVALID: Kind = [400, 'invalid_request_error'];
const STRANGER: Kind = [401, 'authentication_error'];
const NO_MONEY: Kind = [402, 'insufficient_balance'];
const NO_ALLOWANCE: Kind = [402, 'key_limit_exceeded'];
const NOTHING_TO_SERVE: Kind = [404, 'invalid_request_error'];
const NOT_FOUND: Kind = [404, 'not_found'];
const OTHER_METHOD: Kind = [405, 'method_not_allowed'];
const CONFLICT: Kind = [409, 'conflict'];
const TOO_LONG: Kind = [414, 'address_too_long'];
const OTHER_MEDIA: Kind = [415, 'unsupported_media_type'];

/** Asserts the default format of errors, which the API specification and OpenAI's clients expect. */
function expectError(answer: TestResponse, [status, type]: Kind, param?: string | null): void {
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
      code: expect.stringMatching(/^[a-z_]+$/),
      param: param === undefined ? error.param : param,
      metadata: expect.objectContaining({ error_type: expect.stringMatching(/^[a-z_]+$/) }),
    },
  });
  expect(error.param === null || typeof error.param === 'string').toBe(true);
}

// --- callers --------------------------------------------------------------------------------------------------------

type Headers = Readonly<Record<string, string>>;
const ofKey = ({ apiKey }: TestAccount): Headers => ({ authorization: `Bearer ${apiKey}` });
const ofAccount = ({ creditId }: TestAccount): Headers => ({ 'x-credit-id': creditId });

const CALLERS = {
  rich: () => ofKey(rich),
  'rich account': () => ofAccount(rich),
  poor: () => ofKey(poor),
  'poor account': () => ofAccount(poor),
  nobody: () => ({}),
  'another scheme': () => ({ authorization: 'Basic eDp5' }),
  'unknown key': () => ({ authorization: 'Bearer sk-unknown' }),
  'unknown account': () => ofAccount({ creditId: crypto.randomUUID(), apiKey: '' }),
  'impossible account': () => ({ 'x-credit-id': 'me' }),
  'revoked key': onlyOnce(async () => {
    const { id, key } = await newKey({});
    await world.send('DELETE', `/keys/${id}`, { headers: ofAccount(rich) });
    return { 'x-api-key': key };
  }),
  'expired key': onlyOnce(async () => {
    const setRight = shiftClock(world.getService(Clock), -60_000);
    const { key } = await newKey({ expire_at: new Date(Date.now() - 30_000).toISOString() });
    setRight();
    return { 'x-api-key': key };
  }),
  'limited key': onlyOnce(async () => ({ 'x-api-key': (await newKey({ usage_limit_usd: 0.01 })).key })),
} satisfies Record<string, () => Headers | Promise<Headers>>;
type Caller = keyof typeof CALLERS;

async function newKey(more: object): Promise<{ readonly id: string; readonly key: string }> {
  const name = crypto.randomUUID().slice(0, 25);
  const { body } = await world.send('POST', '/keys', { headers: ofAccount(rich), body: { name, ...more } });
  return { id: body.data._id, key: body.data.api_key };
}

function onlyOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

// --- paid operations ------------------------------------------------------------------------------------------------

interface Surface {
  readonly route: string;
  readonly model: string;
  readonly otherKind: string;
  readonly body: (words: string) => Readonly<Record<string, unknown>>;
  /** Fields of a request that costs more than a cent. */
  readonly dear: Readonly<Record<string, unknown>>;
}

const CHAT: Omit<Surface, 'route'> = {
  model: GPT,
  otherKind: LARGE,
  body: (content) => ({ model: GPT, messages: [{ role: 'user', content }] }),
  dear: { model: 'openai/gpt-5', max_tokens: 4_096 },
};
const RESPONSES: Omit<Surface, 'route'> = {
  model: GPT,
  otherKind: LARGE,
  body: (input) => ({ model: GPT, input }),
  dear: { model: 'openai/gpt-5', max_output_tokens: 4_096 },
};
const EMBEDDINGS: Omit<Surface, 'route'> = {
  model: LARGE,
  otherKind: GPT,
  body: (input) => ({ model: LARGE, input }),
  dear: { input: Array(20).fill(Array(8_000).fill(1)) },
};

/** Paid operations with text as input, each at both of its paths. */
const ALL_SURFACES: readonly Surface[] = ['/v1', ''].flatMap((prefix) => [
  { route: `${prefix}/chat/completions`, ...CHAT },
  { route: `${prefix}/responses`, ...RESPONSES },
  { route: `${prefix}/embeddings`, ...EMBEDDINGS },
]);
const SURFACES = sampleCases(ALL_SURFACES, 3);

interface Wrong {
  readonly by?: Caller;
  readonly method?: string;
  readonly headers?: Headers;
  /** Changes to an otherwise valid body. */
  readonly set?: object | ((surface: Surface) => object);
  /** Replaces the entire body. */
  readonly body?: unknown;
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const PLAIN = { 'content-type': 'text/plain' };

const REFUSED: readonly (readonly [string, Kind, param: string | null | undefined, Wrong])[] = [
  ['malformed JSON', INVALID, undefined, { body: '{"model"' }],
  ['white space', INVALID, undefined, { body: ' ' }],
  ['a list', INVALID, null, { body: [] }],
  ['nothing', INVALID, undefined, { body: undefined }],
  ['no model', INVALID, 'model', { set: { model: undefined } }],
  ['a model that is not a string', INVALID, 'model', { set: { model: 7 } }],
  ['an unknown model', NOTHING_TO_SERVE, 'model', { set: { model: 'nope' } }],
  ['an unknown variant', NOTHING_TO_SERVE, 'model', { set: ({ model }) => ({ model: `${model}:thinking` }) }],
  ['a model of another kind', INVALID, 'model', { set: ({ otherKind }) => ({ model: otherKind }) }],
  ['no endpoint without data retention', NOTHING_TO_SERVE, 'provider', { set: { provider: { zdr: true } } }],
  ['no allowed endpoint', NOTHING_TO_SERVE, 'provider', { set: { provider: { only: ['nobody'] } } }],
  ['an unknown preference', INVALID, 'provider.sort', { set: { provider: { sort: 'luck' } } }],
  ['no credential', STRANGER, null, { by: 'nobody' }],
  ['a credential of another scheme', STRANGER, null, { by: 'another scheme' }],
  ['an unknown key', STRANGER, null, { by: 'unknown key' }],
  ['a revoked key', STRANGER, null, { by: 'revoked key' }],
  ['an expired key', STRANGER, null, { by: 'expired key' }],
  ['an unknown account', STRANGER, null, { by: 'unknown account' }],
  ['a malformed credit id', STRANGER, null, { by: 'impossible account' }],
  ['too little money', NO_MONEY, null, { by: 'poor' }],
  ['a key whose limit is too low', NO_ALLOWANCE, null, { by: 'limited key', set: ({ dear }) => dear }],
  ['another method', OTHER_METHOD, null, { method: 'PUT' }],
  ['a form', OTHER_MEDIA, null, { body: 'a=b', headers: FORM }],
  ['plain text', OTHER_MEDIA, null, { body: 'hello', headers: PLAIN }],
  ['a malformed Idempotency-Key', INVALID, 'Idempotency-Key', { headers: { 'idempotency-key': 'x'.repeat(256) } }],
];

/** How many requests each operation rejects: all, or a third, so that each is rejected by at least one of three operations. */
const REFUSED_PER_SURFACE = Math.ceil(REFUSED.length / 3);

describe.each(SURFACES.map((surface, index) => ({ ...surface, index })))('$route rejects', ({ index, ...surface }) => {
  const { route } = surface;
  const good = (more: object = {}) => ({ ...surface.body(HELLO), ...more });
  /** All events except those of requests rejected for lack of money, and the number of charges in the history. */
  const books = async () => {
    const facts = (await world.listEvents()).filter(({ type }) => type !== 'RequestRefused');
    const { data } = (await world.get('/queries/history?page_count=100', rich)).body;
    return [facts, data.filter(({ price_in_usd }: { price_in_usd: number }) => price_in_usd > 0).length];
  };

  test.each(sampleCases(REFUSED, REFUSED_PER_SURFACE, index))(
    '%s before money is held: %j',
    async (_, kind, param, { by = 'rich', method = 'POST', headers, set = {}, ...sent }) => {
      const changes = typeof set === 'function' ? set(surface) : set;
      const body = 'body' in sent ? sent.body : good(changes);
      const credential = await CALLERS[by]();
      const before = await books();
      const answer = await world.send(method, route, { headers: { ...credential, ...headers }, body });
      expectError(answer, kind, param);
      if (kind[0] === 402) expect(answer.body.message).toMatch(/Insufficient balance|limit/);
      if (kind[0] === 405) expect(answer.headers.get('allow')).toBe('POST');
      expect(await books()).toEqual(before);
    },
  );

  test.each([26 * MIB, 25 * MIB + 1])('a body of %i bytes with 413, before it has arrived', async (bytes) => {
    const answer = await raw(
      `POST ${route} HTTP/1.1\nHost: x\nAuthorization: Bearer ${rich.apiKey}\nContent-Type: application/json\nContent-Length: ${bytes}`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/im);
    expect(answer).toContain('"type":"payload_too_large","code":"payload_too_large"');
  });

  test('a large invalid body with 400', async () => {
    const body = `{"model":"nope","input":"${'x'.repeat(sampleSize(24, 5) * MIB)}"`;
    const other = await world.createAccount(1.05); // an account waits after a large body, also with its next one
    expectError(await world.send('POST', route, { body, headers: ofKey(other) }), INVALID);
  });

  test('an Idempotency-Key of another request with 409, and serves only the first request', async () => {
    const headers = { ...ofKey(rich), 'idempotency-key': crypto.randomUUID() };
    expect((await world.send('POST', route, { headers, body: good() })).status).toBe(200);
    const before = await world.listEvents();
    const answer = await world.send('POST', route, { headers, body: good({ user: 'another' }) });
    expectError(answer, [409, 'idempotency_key_reused'], 'Idempotency-Key');
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(await world.listEvents()).toEqual(before);
  });
});

/** Sends a request head that no client library would send, and returns the response as text. */
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

test('rejects the Idempotency-Key of a running chat, response or embedding with 409 and a time to wait', async () => {
  const sent = SURFACES.map(({ route, body }) => ({
    route,
    body: body('[[sandbox tokens=2 latency=2000]]'),
    headers: { ...ofKey(rich), 'idempotency-key': crypto.randomUUID() },
  }));
  const ask = () => Promise.all(sent.map(({ route, ...each }) => world.send('POST', route, each)));
  const open = async () => {
    const types = (await world.listEvents(rich)).map(({ type }) => type);
    return types.filter((type) => type === 'FundsHeld').length - types.filter((type) => /^Hold/.test(type)).length;
  };
  const generation = extendDelay(2_000);
  const first = ask();
  await world.waitUntil(async () => (await open()) === SURFACES.length);
  for (const answer of await ask()) {
    expectError(answer, [409, 'idempotency_in_progress'], 'Idempotency-Key');
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
  }
  generation.end();
  expect((await first).map(({ status }) => status)).toEqual(SURFACES.map(() => 200));
});

describe('a provider failure', () => {
  test.each([
    ['400', INVALID, 'invalid_request'],
    ['429', [429, 'rate_limit_error'], 'rate_limited'],
    ['500', [502, 'upstream_error'], 'upstream_error'],
    ['overloaded', [503, 'upstream_unavailable'], 'upstream_unavailable'],
    ['refuse', [503, 'upstream_unavailable'], 'upstream_unavailable'],
    ['timeout', [504, 'timeout'], 'timeout'],
    ['malformed', [502, 'upstream_error'], 'upstream_error'],
    ['cut', [502, 'upstream_error'], 'upstream_error'],
  ] as const)(
    '(%s) returns %j for chats, responses and embeddings, costs nothing, and is in the history',
    async (fault, kind, code) => {
      const balance = await world.fetchBalance(rich);
      const ask = () =>
        Promise.all(
          SURFACES.map(({ route, body }) => world.post(route, body(`[[sandbox tokens=2 fault=${fault}]]`), rich)),
        );
      const answers = await (fault === 'timeout' ? timeOut(world, ask, SURFACES.length) : ask());
      expect(await world.fetchBalance(rich)).toBe(balance);
      expect((await world.post('/credits/balance', undefined, rich)).body.held_usd).toBe(0);
      const { data } = (await world.get('/queries/history', rich)).body;
      for (const answer of answers) {
        expectError(answer, kind, fault === '400' ? undefined : null);
        const retryAfter = { 429: '1', 502: '2', 503: '2' }[kind[0] as number] ?? null;
        expect(answer.headers.get('retry-after')).toBe(retryAfter);
        const id = answer.headers.get('x-request-id');
        const record = data.find(({ request_id }: { request_id: string }) => request_id === id);
        expect(record).toMatchObject({ price_in_usd: 0, error_code: code });
      }
      const types = new Set(data.slice(0, answers.length).map((each: { query_type: string }) => each.query_type));
      expect(types).toEqual(new Set(['chat_completion', 'response', 'embedding']));
    },
  );
});

// --- free operations ------------------------------------------------------------------------------------------------

/** A request such as `POST /keys`, its caller and its body. */
type Sent = readonly [request: string, by?: Caller, body?: unknown];

const UNKNOWN_KEY = '0123456789abcdef01234567';
const LIGHTNING = 'POST /topup/create/btc-lightning';
const LONG = 'x'.repeat(500);
const FIVE = { amount: 5, currency: 'USD' };
const CONTINUED = { model: GPT, input: 'x', previous_response_id: 'resp_x' };

describe('the gateway rejects requests for', () => {
  test.each<readonly [string, string, Kind, param: string | null | undefined, ...Sent]>([
    ['a URL', 'that does not exist', NOT_FOUND, null, 'GET /v1/nope'],
    ['a URL', 'that does not exist, by another method', NOT_FOUND, null, 'PUT /nope'],
    ['a URL', 'that cannot be decoded', INVALID, undefined, 'GET /v1/%zz'],
    ['a URL', 'with a NUL', INVALID, null, 'GET /topup/status/%00'],
    ['a URL', 'that is too long', TOO_LONG, null, `GET /topup/status/${LONG}`],
    ['models', 'for an unknown one', NOTHING_TO_SERVE, 'model', 'GET /v1/models/openai/nope'],
    ['models', 'with another method', OTHER_METHOD, null, 'POST /v1/models', 'rich', {}],
    ['responses', 'for an unknown one', NOTHING_TO_SERVE, undefined, 'GET /v1/responses/resp_x', 'rich'],
    ['responses', 'by an anonymous caller', STRANGER, null, 'GET /v1/responses/resp_x'],
    ['responses', 'to delete an unknown one', NOTHING_TO_SERVE, undefined, 'DELETE /responses/resp_x', 'rich'],
    [
      'responses',
      'to continue an unknown one',
      NOTHING_TO_SERVE,
      'previous_response_id',
      'POST /v1/responses',
      'rich',
      CONTINUED,
    ],
    ['keys', 'without an account', STRANGER, null, 'GET /keys'],
    ['keys', 'by a key', STRANGER, null, 'GET /keys', 'rich'],
    ['keys', 'by an unknown account', STRANGER, null, 'GET /keys', 'unknown account'],
    ['keys', 'with malformed JSON', INVALID, undefined, 'POST /keys', 'rich account', '{'],
    ['keys', 'without a name', INVALID, 'name', 'POST /keys', 'rich account', {}],
    ['keys', 'with a name that is taken', CONFLICT, undefined, 'POST /keys', 'rich account', { name: 'Default' }],
    [
      'keys',
      'with a period but no limit',
      INVALID,
      undefined,
      'POST /keys',
      'rich account',
      wrongKey({ reset_period: 'daily' }),
    ],
    [
      'keys',
      'with an unknown period',
      INVALID,
      'reset_period',
      'POST /keys',
      'rich account',
      wrongKey({ usage_limit_usd: 1, reset_period: 'x' }),
    ],
    [
      'keys',
      'with an expiry that has passed',
      INVALID,
      undefined,
      'POST /keys',
      'rich account',
      wrongKey({ expire_at: '2020-01-01' }),
    ],
    [
      'keys',
      'with an expiry that is not a date',
      INVALID,
      'expire_at',
      'POST /keys',
      'rich account',
      wrongKey({ expire_at: 'soon' }),
    ],
    ['keys', 'to show an unknown one', NOT_FOUND, null, `GET /keys/${UNKNOWN_KEY}`, 'rich account'],
    ['keys', 'to change an unknown one', NOT_FOUND, null, `PATCH /keys/${UNKNOWN_KEY}`, 'rich account', { name: 'x' }],
    ['keys', 'to revoke an unknown one', NOT_FOUND, null, `DELETE /keys/${UNKNOWN_KEY}`, 'rich account'],
    ['top-ups', 'by an anonymous caller', STRANGER, null, LIGHTNING, 'nobody', { amount: 5 }],
    ['top-ups', 'by an unknown method', NOTHING_TO_SERVE, 'method', 'POST /topup/create/x', 'rich', FIVE],
    ['top-ups', 'in an unknown currency', INVALID, 'currency', LIGHTNING, 'rich', { amount: 5, currency: 'EUR' }],
    ['top-ups', 'without an amount', INVALID, 'amount', LIGHTNING, 'rich', { currency: 'USD' }],
    ['top-ups', 'for an unknown invoice', NOT_FOUND, null, 'GET /topup/status/nope'],
    ['the history', 'by an anonymous caller', STRANGER, null, 'GET /queries/history'],
    ['the history', 'from an invalid date', INVALID, 'start_date', 'GET /queries/history?start_date=soon', 'rich'],
    ['the history', 'on an invalid page', INVALID, 'page', 'GET /queries/history?page=x', 'rich'],
    ['the history', 'of a key, by a key', INVALID, 'api_key', 'GET /queries/history?api_key=sk-x', 'rich'],
    [
      'the history',
      'of all keys, by an account',
      INVALID,
      'all_keys',
      'GET /queries/history?all_keys=true',
      'rich account',
    ],
    ['the history', 'of an unknown key', INVALID, 'api_key', 'GET /queries/history?api_key=sk-x', 'rich account'],
    ['the balance', 'by an anonymous caller', STRANGER, null, 'POST /credits/balance'],
    ['the balance', 'of an invalid credit id', STRANGER, null, 'POST /credits/balance', 'nobody', { credit_id: 'x' }],
    [
      'the balance',
      'of an unknown account',
      STRANGER,
      null,
      'POST /credits/balance',
      'nobody',
      { credit_id: crypto.randomUUID() },
    ],
    ['the balance', 'by another method', OTHER_METHOD, null, 'GET /credits/balance', 'rich'],
  ])('%s (%s): %j', async (_, __, kind, param, ...sent) => {
    const before = await world.listEvents();
    expectError(await send(...sent), kind, param);
    expect(await world.listEvents()).toEqual(before);
  });

  test('a key of another account with 404, as if it did not exist', async () => {
    const { data } = (await send('GET /keys', 'rich account')).body;
    expectError(await send(`GET /keys/${data[0]._id}`, 'poor account'), NOT_FOUND, null);
  });
});

function wrongKey(more: object): object {
  return { name: 'wrong', ...more };
}

async function send(request: string, by: Caller = 'nobody', body?: unknown): Promise<TestResponse> {
  const [method = '', route = ''] = request.split(' ');
  return world.send(method, route, { headers: await CALLERS[by](), body });
}

test('returns 500 in the common format for an unexpected error, and reveals nothing', async () => {
  const database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
  const { rows } = await database.query("select schemaname from pg_tables where tablename = 'queries'");
  const table = `${rows[0].schemaname}.queries`;
  await database.query(`alter table ${table} rename to gone`);
  try {
    const answer = await world.get('/queries/history', poor);
    expectError(answer, [500, 'server_error'], null);
    expect(answer.body.message).toBe('Internal server error');
  } finally {
    await database.query(`alter table ${rows[0].schemaname}.gone rename to queries`);
    await database.end();
  }
});
