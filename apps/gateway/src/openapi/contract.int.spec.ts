/** The document and the service agree: every documented route is called, and every response is validated. */
import { createHmac } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';
import pg from 'pg';
import {
  type DocumentedOperation,
  getExample,
  isEncrypted,
  listOperations,
  OperationCaller,
  sampleCases,
  type TestAccount,
  type TestResponse,
  TestWorld,
  takesForm,
  toOperationBody,
} from '#testing';
import type { DocumentedResponse } from './components.ts';
import type { OpenApiDocument, PathOperation } from './document.ts';

/** Number of other paths of operations that are called, unless all cases are tested. */
const SAMPLED_ALIASES = 4;

let world: TestWorld;
let account: TestAccount;
let caller: OperationCaller;
let document: OpenApiDocument;
let places: readonly DocumentedOperation[];
/** All operations, and a few of those at the other paths of their operations. */
let calledPlaces: readonly DocumentedOperation[];
/** The routes that Fastify reports, such as `GET /keys/:id`. */
const served = new Set<string>();

beforeAll(async () => {
  subscribe('fastify.initialization', watch);
  world = await TestWorld.openWithSagas();
  unsubscribe('fastify.initialization', watch);
  account = await world.createAccount(10.5);
  caller = new OperationCaller(world, account);
  document = (await world.get('/openapi.json')).body;
  places = listOperations(document);
  const [originals = [], aliases = []] = [false, true].map((isAlias) =>
    places.filter(({ operation }) => (operation['x-alias-of'] !== undefined) === isAlias),
  );
  calledPlaces = [...originals, ...sampleCases(aliases, SAMPLED_ALIASES)];
});
afterAll(() => world.close());

function watch(message: unknown): void {
  const { fastify } = message as { fastify: FastifyInstance };
  fastify.addHook('onRoute', ({ method, url, preParsing }) => {
    const refusal = preParsing !== undefined && url !== '*';
    if (!refusal && url !== '*') for (const each of [method].flat()) served.add(`${each} ${url}`);
  });
}

// --- validation of responses ----------------------------------------------------------------------------------------

let ajv: Ajv2020;
beforeAll(() => {
  ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, strictRequired: false });
  (formats as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addVocabulary(['components']);
  ajv.addSchema({ $id: 'document', components: strictly(document.components) } as object, 'document');
});

/** Returns a schema that rejects undocumented fields, and whose references point into the document. */
function strictly(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strictly);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [
    key,
    key === '$ref' ? `document${each}` : strictly(each),
  ]);
  const closed = 'properties' in value && !('additionalProperties' in value) ? { additionalProperties: false } : {};
  return { ...closed, ...Object.fromEntries(entries) };
}

/** By schema of the document, so that each schema is compiled once. */
const compiled = new WeakMap<object, ValidateFunction>();

function mistakes(schema: unknown, value: unknown): readonly ErrorObject[] {
  const validate = compiled.get(schema as object) ?? ajv.compile(strictly(schema) as object);
  compiled.set(schema as object, validate);
  return validate(value) ? [] : (validate.errors ?? []);
}

function documented({ responses }: PathOperation, status: number): DocumentedResponse | undefined {
  const response = responses[status];
  if (response && '$ref' in response) return document.components.responses[response.$ref.split('/').at(-1) ?? ''];
  return response as DocumentedResponse | undefined;
}

/** Fails unless the document describes this response, to its last field. */
function expectDocumented({ method, path, operation }: DocumentedOperation, answer: TestResponse): void {
  const where = `${method} ${path} → ${answer.status} ${answer.text.slice(0, 500)}`;
  const response = documented(operation, answer.status);
  expect([where, response]).toEqual([where, expect.anything()]);
  const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
  const content = response?.content?.[type];
  expect([where, type, content]).toEqual([where, type, expect.anything()]);
  const bodies = type === 'text/event-stream' ? answer.events.filter((event) => event !== '[DONE]') : [bodyOf(answer)];
  for (const body of bodies) expect([where, mistakes(content?.schema, body)]).toEqual([where, []]);
  expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expectHeadersDocumented(where, response, answer);
}

/** Headers of HTTP itself and of CORS, and headers for proxies and browsers. */
const OF_HTTP =
  /^(content-(type|length|range|disposition|security-policy)|accept-ranges|etag|cross-origin-resource-policy|transfer-encoding|trailer|connection|keep-alive|date|vary|cache-control|referrer-policy|x-(accel-buffering|content-type-options|frame-options)|access-control-.*)$/;

function expectHeadersDocumented(
  where: string,
  response: DocumentedResponse | undefined,
  { headers }: TestResponse,
): void {
  for (const [name, value] of headers) {
    if (OF_HTTP.test(name)) continue;
    expect([where, Object.keys(response?.headers ?? {})]).toEqual([where, expect.arrayContaining([name])]);
    const schema = document.components.headers[name]?.schema;
    expect([where, name, value, mistakes(schema, value)]).toEqual([where, name, value, []]);
  }
}

function bodyOf({ body, text }: TestResponse): unknown {
  return body === undefined ? text : body;
}

// --- calls of operations --------------------------------------------------------------------------------------------

/** Whether a request without the credential of an account gets a challenge. */
function asksForPayment({ operation }: DocumentedOperation): boolean {
  return JSON.stringify(operation.responses['402'] ?? {}).includes('Challenge');
}

/** Skips reading a video with a proof of payment, which has its own tests. */
function isShown({ path }: DocumentedOperation): (scheme: string) => boolean {
  return (scheme) => scheme !== 'payment' || !path.includes('/videos/{id}');
}

/** Pays the challenge of this request, or of another request if this one gets no challenge. */
async function proofFor(place: DocumentedOperation, example: unknown): Promise<Record<string, string>> {
  const images = { body: { model: 'black-forest-labs/flux-1-schnell', prompt: 'A counting house' } };
  const asked = asksForPayment(place)
    ? caller.send(place, {}, example)
    : world.send('POST', '/v1/images/generations', images);
  const { challengeId, invoice } = (await asked).body;
  return { authorization: `L402 ${challengeId}:${(await world.payInvoice(invoice)).body.preimage}` };
}

const UNKNOWN: Readonly<Record<string, string>> = {
  bearer: 'Bearer sk-unknown',
  payment: `L402 ${'A'.repeat(43)}:${'0'.repeat(64)}`,
  'x-credit-id': '00000000-0000-4000-8000-000000000000',
};

function schemesOf({ security }: PathOperation): readonly string[] {
  return security.flatMap((each) => Object.keys(each));
}

/** Webhooks are signed by their senders, and received as raw bytes. */
const HOOK = '{}';
const HOOK_HEADERS = {
  'btcpay-sig': `sha256=${createHmac('sha256', 'sandbox').update(HOOK).digest('hex')}`,
};

function isHook(place: DocumentedOperation): boolean {
  return place.operation.operationId === 'receivePaymentHook' || isVendors(place);
}

function isVendors({ operation }: DocumentedOperation): boolean {
  return operation.operationId === 'receiveVideoHook';
}

function allCredentials(): Record<string, string> {
  return { ...caller.createCredential('bearer'), ...caller.createCredential('x-credit-id') };
}

function bodySchemaOf({ requestBody }: PathOperation): Readonly<Record<string, unknown>> {
  const { $ref } = (Object.values(requestBody?.content ?? {})[0]?.schema ?? {}) as { $ref?: string };
  return document.components.schemas[$ref?.split('/').at(-1) ?? ''] ?? {};
}

function getSuccessStatus({ operation }: DocumentedOperation): number {
  return Number(Object.keys(operation.responses).find((status) => status.startsWith('2')));
}

// --- the document: each rule lists its violations -------------------------------------------------------------------

const SAYS_WHAT = ['type', 'enum', 'const', '$ref', 'oneOf', 'anyOf'];
const nameless = (route: string) => route.replaceAll(/\{\w+\}|:\w+|\*/g, '{}');

test.each<readonly [rule: string, broken: () => readonly unknown[]]>([
  [
    'has every served route and no other',
    () => {
      const documentedRoutes = places.map(({ method, path }) => nameless(`${method} ${path}`));
      const servedRoutes = [...served].filter((route) => !route.startsWith('HEAD ')).map(nameless);
      expect(servedRoutes.length).toBeGreaterThan(15);
      return [...new Set(documentedRoutes).symmetricDifference(new Set(servedRoutes))];
    },
  ],
  [
    'has valid schemas',
    () => Object.values(document.components.schemas).flatMap((schema) => compileError(strictly(schema) as object)),
  ],
  [
    'has no dangling reference',
    () =>
      [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)]
        .map(([, reference = '']) => reference)
        .filter((reference) => valueAt(reference) === undefined),
  ],
  [
    'has no unused schema',
    () => {
      const text = JSON.stringify(document);
      const names = Object.keys(document.components.schemas);
      return names.filter((name) => !text.includes(`"#/components/schemas/${name}"`));
    },
  ],
  [
    'gives every operation a unique id',
    () => {
      const ids = places.map(({ operation }) => operation.operationId);
      return ids.filter((id, i) => !/^[a-z][A-Za-z0-9]+$/.test(id) || ids.indexOf(id) !== i);
    },
  ],
  [
    'gives every operation a summary and a tag',
    () => places.filter(({ operation }) => !operation.summary || operation.tags.length === 0),
  ],
  [
    'names every path parameter and no other',
    () =>
      places.filter(({ path, operation }) => {
        const names = operation.parameters.filter(({ in: where }) => where === 'path').map(({ name }) => name);
        return names.join() !== [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).join();
      }),
  ],
  [
    'specifies the type of every request field',
    () =>
      places.flatMap(({ operation }) => {
        const fields = [
          ...operation.parameters.map(({ name, schema }) => [name, schema] as const),
          ...Object.entries(bodySchemaOf(operation).properties ?? {}),
        ];
        const vague = fields.filter(([, schema]) => !SAYS_WHAT.some((each) => each in (schema as object)));
        return vague.map(([name]) => `${operation.operationId}.${name}`);
      }),
  ],
  [
    'has examples that match their schemas',
    () =>
      places.flatMap(({ operation }) => {
        const [content] = Object.values(operation.requestBody?.content ?? {});
        const queries = operation.parameters.filter((each) => each.in === 'query' && each.example !== undefined);
        return [
          ...(content?.example ? mistakes(content.schema, content.example) : []),
          ...queries.flatMap(({ schema, example }) => mistakes(schema, example)),
        ];
      }),
  ],
  [
    'has the base URL of the API',
    () => [...new Set(document.servers.map(({ url }) => url)).symmetricDifference(new Set([world.api]))],
  ],
])('the document %s', (_, broken) => {
  expect(broken()).toEqual([]);
});

test('the document is valid OpenAPI 3.1', async () => {
  expect(document.openapi).toMatch(/^3\.1\./);
  expect(await new Validator().validate(structuredClone({ ...document }))).toEqual({ valid: true });
});

test('the document derives request schemas from the validation rules', () => {
  expect(document.components.schemas.NewKey).toMatchObject({
    required: ['name'],
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 25 },
      usage_limit_usd: { type: ['number', 'null'], minimum: 0.01, maximum: 1_000_000_000 },
      reset_period: { enum: ['daily', 'weekly', 'monthly', null] },
      expire_at: { type: ['string', 'null'] },
    },
  });
  expect(document.components.schemas.ChatRequest).toMatchObject({
    required: ['messages'],
    properties: { n: { type: ['integer', 'null'], minimum: 1, maximum: 128 }, model: { type: ['string', 'null'] } },
  });
});

function compileError(schema: object): readonly unknown[] {
  try {
    ajv.compile(schema);
    return [];
  } catch (error) {
    return [error];
  }
}

function valueAt(reference: string): unknown {
  return reference.split('/').reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], document);
}

// --- every operation: requests and the documented status of each ----------------------------------------------------

/** A request to an operation, and what is expected of its response. */
interface Probe {
  readonly send: () => Promise<TestResponse>;
  readonly status: number;
  readonly param?: string;
}

/** An invalid signature in the URL is rejected before the id is looked up. */
const isSigned = ({ path }: DocumentedOperation) => path.includes('/media/');

const takesBody = (place: DocumentedOperation) =>
  (place.method === 'POST' || place.method === 'PATCH') && !isHook(place);

/** Of all probes, `count` are sent unless all cases are tested: without `count`, those of every operation. */
type Rule = readonly [
  rule: string,
  probes: (place: DocumentedOperation) => readonly Probe[],
  atLeast: number,
  count?: number,
];

test.each<Rule>([
  [
    'responds to its example with each accepted credential',
    (place) => {
      const schemes = schemesOf(place.operation);
      // The webhook of a provider belongs to a video that does not exist here.
      if (isHook(place))
        return [{ send: () => caller.send(place, HOOK_HEADERS, HOOK), status: isVendors(place) ? 404 : 200 }];
      const shown = (schemes.length > 0 ? schemes : ['none']).filter(isShown(place));
      return sampleCases(shown, 1, places.indexOf(place)).map((scheme) => ({
        send: async () => {
          const example = await caller.createExample(place);
          if (scheme === 'payment') return caller.send(place, await proofFor(place, example), example);
          return caller.send(place, scheme === 'none' ? {} : caller.createCredential(scheme), example);
        },
        status: getSuccessStatus(place),
      }));
    },
    20,
  ],
  [
    'rejects an invalid credential, and a missing one if one is required',
    (place) => {
      const [scheme] = schemesOf(place.operation);
      if (scheme === undefined) return [];
      const header = scheme === 'bearer' || scheme === 'payment' ? 'authorization' : scheme;
      const wrong = { [header]: UNKNOWN[scheme] ?? '' };
      const [first = {}] = place.operation.security;
      const missing = {
        send: () => caller.send(place, {}),
        status: asksForPayment(place) ? 402 : 401,
      };
      const refused = { send: () => caller.send(place, wrong), status: 401 };
      const probes = Object.keys(first).length === 0 ? [refused] : [missing, refused];
      return sampleCases(probes, 1, places.indexOf(place));
    },
    20,
  ],
  [
    'rejects a URL with a NUL',
    (place) => [{ send: async () => world.send(place.method, `${await resolvePath(place)}?x=%00`), status: 400 }],
    20,
    20,
  ],
  [
    'with a body other than a form rejects malformed JSON',
    (place) => {
      const wrong = { body: '{"broken', headers: allCredentials() };
      return takesBody(place) && !takesForm(place.operation)
        ? [{ send: async () => world.send(place.method, await resolvePath(place), wrong), status: 400 }]
        : [];
    },
    5,
    12,
  ],
  [
    'with an unencrypted body rejects another media type',
    (place) => {
      const wrong = { body: 'x', headers: { ...allCredentials(), 'content-type': 'text/plain' } };
      return takesBody(place) && !isEncrypted(place)
        ? [{ send: async () => world.send(place.method, await resolvePath(place), wrong), status: 415 }]
        : [];
    },
    5,
    12,
  ],
  [
    'responds with 404 to an unknown id',
    (place) => {
      if (!place.path.includes('{') || isSigned(place)) return [];
      const address = place.path.replaceAll(/\{\w+\}/g, 'nothing');
      const sent = { headers: allCredentials(), body: toOperationBody(place.operation, getExample(place.operation)) };
      return [{ send: () => world.send(place.method, address, sent), status: 404 }];
    },
    6,
  ],
  [
    'rejects a body without one of its required fields',
    (place) =>
      ((bodySchemaOf(place.operation).required ?? []) as string[]).map((name) => {
        const { [name]: _, ...body } = getExample(place.operation) as Record<string, unknown>;
        const headers = caller.createCredential(schemesOf(place.operation)[0] ?? '');
        return { send: () => caller.send(place, headers, body), status: 400, param: name };
      }),
    5,
  ],
])('every operation %s, as documented', async (_, probesOf, atLeast, count = Number.POSITIVE_INFINITY) => {
  const probes = calledPlaces.flatMap((place) => probesOf(place).map((probe) => ({ place, ...probe })));
  expect(probes.length).toBeGreaterThanOrEqual(atLeast);
  for (const { place, send, status, param } of sampleCases(probes, count)) {
    const answer = await send();
    const where = `${place.method} ${place.path} ${answer.text.slice(0, 300)}`;
    expect([where, answer.status]).toEqual([where, status]);
    const { param: named, details } = answer.body?.error ?? {};
    if (param !== undefined) expect([where, named ?? details?.param]).toEqual([where, param]);
    expectDocumented(place, answer);
  }
});

async function resolvePath(place: DocumentedOperation): Promise<string> {
  return (await caller.createTarget(place)).split('?')[0] ?? '';
}

// --- responses that need more than an example -----------------------------------------------------------------------

describe('responses that need more than an example', () => {
  const placeOf = (id: string) => places.find(({ operation }) => operation.operationId === id) as DocumentedOperation;
  const chat = (directive: string, more: object = {}) => world.sendChat(account, directive, more);

  const streamed = { model: 'openai/gpt-5-mini', input: 'Hello', stream: true };
  const limited = { name: 'limited', usage_limit_usd: 1, reset_period: 'daily', expire_at: '2999-01-01' };
  const tooLarge = { amount: 1e6, currency: 'USD' };

  test.each<[string, string, number, () => Promise<TestResponse>]>([
    ['a stream', 'createChatCompletion', 200, () => chat('tokens=4', { stream: true })],
    ['an interrupted stream', 'createChatCompletion', 200, () => chat('tokens=8 fault=cut', { stream: true })],
    ['a completion with reasoning', 'createChatCompletion', 200, () => chat('reasoning=8')],
    ['an unknown model', 'createChatCompletion', 404, () => chat('', { model: 'nope' })],
    ['an empty account', 'createChatCompletion', 402, async () => world.sendChat(await world.createAccount())],
    ['an idempotency key of another request', 'createChatCompletion', 409, () => again({ n: 1 }, { n: 2 })],
    ['a saved response', 'createChatCompletion', 200, () => again({ n: 3 }, { n: 3 })],
    ['a rejection by the provider', 'createChatCompletion', 400, () => chat('fault=400')],
    ['a provider with too many requests', 'createChatCompletion', 429, () => chat('fault=429')],
    ['a provider that fails', 'createChatCompletion', 502, () => chat('fault=500')],
    ['a provider that closes the connection', 'createChatCompletion', 503, () => chat('fault=refuse')],
    ['a streamed response', 'createResponse', 200, () => world.post('/v1/responses', streamed, account)],
    ['a name that is taken', 'createKey', 409, () => manage('POST', '/keys', { name: 'Default' })],
    ['a limit that is too small', 'createKey', 400, () => manage('POST', '/keys', { name: 'x', usage_limit_usd: 0 })],
    ['keys with their secrets', 'listKeys', 200, () => manage('GET', '/keys?show_key=true&include_disabled=true')],
    ['a key with a limit', 'createKey', 201, () => manage('POST', '/keys', limited)],
    ['too large an amount', 'createTopup', 400, () => world.post('/topup/create/btc-lightning', tooLarge, account)],
    ['the history of the account', 'getHistory', 200, () => world.get('/queries/history?all_keys=true', account)],
    ['a page that is not a number', 'getHistory', 400, () => world.get('/queries/history?page=x', account)],
    ['all models', 'listModels', 200, () => world.get('/v1/models?type=all')],
  ])('such as %s (%s) are documented', async (_, id, status, asked) => {
    const answer = await asked();
    expect([answer.status, answer.text.slice(0, 300)]).toEqual([status, expect.anything()]);
    expectDocumented(placeOf(id), answer);
  });

  test('such as replayed chats have a generation id, and report that they are replayed', async () => {
    const { headers } = await again({ n: 4 }, { n: 4 });
    expect([headers.get('x-generation-id'), headers.get('idempotent-replayed')]).toEqual([
      expect.stringMatching(/^gen-/),
      'true',
    ]);
  });

  test('such as replays are documented for every operation with an Idempotency-Key and no other', () => {
    const takers = places.filter(({ operation }) =>
      operation.parameters.some(({ name }) => name === 'idempotency-key'),
    );
    expect(new Set(takers.map(({ path }) => path.replace('/v1', '')))).toEqual(
      new Set([
        '/chat/completions',
        '/completions',
        '/responses',
        '/responses/compact',
        '/embeddings',
        '/messages',
        '/images/generations',
        '/images/edits',
        '/videos',
        ...['', '/api'].flatMap((at) => [`${at}/audio/speech`, `${at}/audio/transcriptions`]),
        '/data/api/{provider}/{action}',
        '/data/x/{action}',
        '/keys',
        '/topup/create/{method}',
        '/topup/card/session',
      ]),
    );
    for (const place of places) {
      const { operation } = place;
      const headers = Object.keys(documented(operation, getSuccessStatus(place))?.headers ?? {});
      expect(headers.includes('idempotent-replayed')).toBe(takers.some((taker) => taker.operation === operation));
      expect(Object.keys(documented(operation, 409)?.headers ?? {}).includes('x-should-retry')).toBe(
        headers.includes('idempotent-replayed'),
      );
    }
  });

  /** Sends two requests with one Idempotency-Key, and returns the response to the second. */
  async function again(...changes: readonly [object, object]): Promise<TestResponse> {
    const example = getExample(placeOf('createChatCompletion').operation) as object;
    const headers = {
      ...caller.createCredential('bearer'),
      'idempotency-key': `used twice ${JSON.stringify(changes)}`,
    };
    const [first, second] = changes.map((change) => ({ ...example, ...change }));
    await world.send('POST', '/v1/chat/completions', { headers, body: first });
    return world.send('POST', '/v1/chat/completions', { headers, body: second });
  }

  const manage = (method: string, route: string, body?: unknown) =>
    world.send(method, route, { headers: { 'x-credit-id': account.creditId }, body });
});

// --- the last test, because the database does not come back ---------------------------------------------------------

/** Makes the database reject connections, and terminates the existing ones. */
async function loseDatabase(): Promise<void> {
  const url = new URL(world.databaseUrl);
  const name = url.pathname.slice(1);
  const client = new pg.Client({ connectionString: Object.assign(url, { pathname: '/postgres' }).href });
  await client.connect();
  await client.query(`alter database ${name} allow_connections false`);
  await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
  await client.end();
}

/** Read operations with a body. */
const READS: ReadonlySet<string> = new Set(['getBalance', 'countMessageTokens']);
/** Routes that do not need PostgreSQL. */
const NEED_NONE = [
  '/topup/payment-methods',
  '/topup/card',
  '/media/{id}/{n}',
  '/audio/voices',
  '/audio/models',
  '/data/endpoints',
  '/private/attestation',
  '/health',
  '/health/live',
  '/openapi.json',
  '/docs',
];

test('every free read responds as documented without PostgreSQL: with 503 if it needs the database', async () => {
  const isPaid = ({ operation }: DocumentedOperation) => operation.responses['402'] !== undefined;
  const needsProof = (place: DocumentedOperation) => schemesOf(place.operation).join() === 'payment';
  const asked = calledPlaces
    .filter(({ method, operation }) => method === 'GET' || READS.has(operation.operationId))
    .filter((place) => !isPaid(place) && !needsProof(place));
  const requests = await Promise.all(
    asked.map(async (place) => {
      const [address, body] = [
        await caller.createTarget(place),
        toOperationBody(place.operation, await caller.createExample(place)),
      ];
      return () => world.send(place.method, address, { headers: allCredentials(), body });
    }),
  );
  await loseDatabase();
  const answers = await Promise.all(requests.map((send) => send()));
  const served = new Map<string, number>();
  for (const [i, answer] of answers.entries()) {
    const place = asked[i] as DocumentedOperation;
    expectDocumented(place, answer);
    if (answer.status !== 503) served.set(place.path.replace(/^(\/api)?\/v1/, ''), answer.status);
  }
  expect(served).toEqual(new Map(NEED_NONE.map((path) => [path, 200])));
});
