/**
 * Valid and malformed requests, generated from the schemas of the document. Every response is documented and no
 * response is a 500. An error costs nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import {
  createForm,
  readResponse,
  sampleSize,
  type TestAccount,
  type TestResponse,
  TestWorld,
  USES_ALL_CASES,
} from '#testing';
import type { OpenApiDocument, PathOperation } from './document.ts';
import type { JsonSchema } from './operation.ts';

/** Faults that the sandbox applies without a delay. */
const FAULTS = ['400', 'cut', 'malformed', 'no_usage', 'zero'];
const FUNDED = 1.05;
const RUNS = sampleSize(30, 3);
const CHAT_RUNS = sampleSize(60, 10);
/** Number of requests that are checked for their responses only. */
const BRIEF_RUNS = sampleSize(15, 1);
const SEED = 20_261_121;
const LARGE = 100_000;

let world: TestWorld;
let account: TestAccount;
let document: OpenApiDocument;
let isError: ValidateFunction;

beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  world.contracts.allowInvalidValues();
  account = await world.createAccount(FUNDED);
  document = (await world.get('/openapi.json')).body;
  const { components } = document;
  const ajv = new Ajv2020({ strict: false });
  const shapes = ['Error', 'AnthropicError'].map((name) => ({ $ref: `#/components/schemas/${name}` }));
  isError = ajv.compile({ anyOf: shapes, components });
});
afterAll(() => world.close());

// --- generated requests ---------------------------------------------------------------------------------------------

const ODD_TEXT = [
  '',
  ' ',
  '\0',
  '\ud800',
  '\udfff',
  '\u202e',
  '🎉'.repeat(30),
  'ǆ',
  "' or 1=1 --",
  '__proto__',
  'toString',
  'openai/gpt-5-mini:constructor',
  'openai/gpt-5-mini:__proto__:toString',
  '%00',
  '\r\nx: y',
];
const ODD = [null, true, 0, -1, 0.5, 1e308, -1e-308, Number.MAX_SAFE_INTEGER, [], {}, [[]], 'constructor', ...ODD_TEXT];

const nested = fc.integer({ min: 1, max: 2_000 }).map((depth) => {
  let value: unknown = 'deep';
  for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { a: value };
  return value;
});
const large = fc.constantFrom<unknown>(
  'x'.repeat(LARGE),
  '🎉'.repeat(LARGE),
  Array.from({ length: LARGE }, () => 0),
);
const odd = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<unknown>(...ODD) },
  { weight: 2, arbitrary: fc.anything({ maxDepth: 3 }).map(asJson) },
  { weight: 1, arbitrary: nested },
);
const anything = fc.oneof({ weight: 7, arbitrary: odd }, { weight: 1, arbitrary: large });

/** Converts a value to one that JSON can represent, without NaN and functions. */
function asJson(value: unknown): unknown {
  const text = JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each));
  return text === undefined ? null : JSON.parse(text);
}

/** Generates values by the type and the bounds of a schema, without regard to patterns, formats and rare keywords. */
function allowed(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { $ref, type, enum: values, const: constant } = schema;
  if (typeof $ref === 'string') return allowed(document.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {});
  if (constant !== undefined) return fc.constant(constant);
  if (Array.isArray(values)) return fc.constantFrom(...values);
  if (Array.isArray(type)) return fc.oneof(...type.map((each) => allowed({ ...schema, type: each })));
  return OF_TYPE[String(type)]?.(schema) ?? anything;
}

const OF_TYPE: Readonly<Record<string, (schema: JsonSchema) => fc.Arbitrary<unknown>>> = {
  null: () => fc.constant(null),
  boolean: () => fc.boolean(),
  string: ({ minLength = 0, maxLength = 40 }) =>
    fc.string({ unit: 'binary', minLength: Number(minLength), maxLength: Number(maxLength) }),
  integer: ({ minimum = -1_000, maximum = 1_000_000 }) => fc.integer({ min: Number(minimum), max: Number(maximum) }),
  number: ({ minimum = 0, maximum = 1_000_000 }) =>
    fc.double({ min: Number(minimum), max: Number(maximum), noNaN: true }),
  array: ({ items = {}, minItems = 0 }) =>
    fc.array(allowed(items as JsonSchema), { minLength: Number(minItems), maxLength: Number(minItems) + 3 }),
  object: ({ properties = {}, required = [] }) => {
    const fields = Object.entries(properties as Record<string, JsonSchema>).map(([name, each]) => [
      name,
      allowed(each),
    ]);
    return fc.record(Object.fromEntries(fields), { requiredKeys: required as never[] });
  },
};

/** Generates a body that the schema allows, one with up to three fields changed, removed or added, or any value. */
function bodies(schema: JsonSchema, example: object): fc.Arbitrary<unknown> {
  const made = allowed(schema) as fc.Arbitrary<Record<string, unknown>>;
  const kept = fc.subarray(Object.entries(example)).map((entries) => Object.fromEntries(entries));
  const good = fc.oneof(
    fc.constant(example),
    fc.tuple(made, kept).map(([all, some]) => ({ ...all, ...some })),
    made,
  );
  const names = Object.keys((schema.properties ?? {}) as object);
  const name = fc.constantFrom(...names, 'constructor', 'toString', '__proto__', 'unknown');
  const spoilt = fc
    .tuple(good, fc.array(fc.tuple(name, fc.option(anything, { nil: undefined })), { minLength: 1, maxLength: 3 }))
    .map(([body, changes]) => Object.fromEntries([...Object.entries(body), ...changes]));
  return fc.oneof({ weight: 2, arbitrary: good }, { weight: 6, arbitrary: spoilt }, { weight: 1, arbitrary: anything });
}

type Headers = Readonly<Record<string, string>>;

/** Generates credentials, most of them valid. */
function credentials({ security }: PathOperation): fc.Arbitrary<Headers> {
  const key = { authorization: `Bearer ${account.apiKey}` };
  const id = { 'x-credit-id': account.creditId };
  const takes = (scheme: string) => security.some((each) => scheme in each);
  const right: Headers[] = [...(takes('bearer') ? [key] : []), ...(takes('x-credit-id') ? [id] : [])];
  const wrong: Headers[] = [{}, { 'api-key': '' }, { authorization: 'Bearer \u00ff' }, { 'x-credit-id': '{}' }];
  return fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom<Headers>(...(right.length > 0 ? right : [{}])) },
    { weight: 1, arbitrary: fc.constantFrom<Headers>(...wrong) },
  );
}

function asField(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

const segment = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
  fc.constantFrom(...ODD_TEXT, 'a/b', '..'),
);

// --- expectations ---------------------------------------------------------------------------------------------------

/** Whether the response is an HTML page. */
function isPage({ headers, text }: TestResponse): boolean {
  return headers.get('content-type') === 'text/html; charset=utf-8' && text.startsWith('<!doctype html>');
}

/** Expects a documented response other than a 500. An error has an error format or is an HTML page. */
function expectDecent(answer: TestResponse, operation: PathOperation | undefined): void {
  const about = `${answer.status} ${answer.text.slice(0, 300)}`;
  expect(answer.status === 500 ? about : '').toBe('');
  if (answer.status >= 400) expect([about, isPage(answer) || isError(answer.body)]).toEqual([about, true]);
  if (operation)
    expect([about, Object.keys(operation.responses)]).toEqual([about, expect.arrayContaining([String(answer.status)])]);
}

async function money(): Promise<{ readonly balance: number; readonly held_usd: number }> {
  return (await world.post('/credits/balance', undefined, account)).body;
}

/** Expects that no hold is open, and that an error has not changed the balance. */
async function expectFair({ status }: TestResponse, before: number): Promise<void> {
  // A job that outlives its response holds money until it has ended.
  if (status === 202) await world.waitUntil(async () => (await money()).held_usd === 0);
  const { balance, held_usd } = await money();
  expect(held_usd).toBe(0);
  if (status >= 400) expect(balance).toBe(before);
}

const places = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

/** Operations with a body of this type, each at one of its paths. */
const firstOfAll = (type: string) =>
  places().filter(({ operation }) => operation.requestBody?.content[type] && !operation['x-alias-of']);

async function newKey(): Promise<string> {
  const headers = { 'x-credit-id': account.creditId };
  return (await world.send('POST', '/keys', { headers, body: { name: 'to be changed' } })).body.data._id;
}

const JSON_TYPE = 'application/json';
const FORM = 'multipart/form-data';

const contentOf = ({ requestBody }: PathOperation, type = JSON_TYPE) => {
  const { schema = {}, example = {} } = requestBody?.content[type] ?? {};
  const name = String(schema.$ref).split('/').at(-1) ?? '';
  return { schema: document.components.schemas[name] ?? {}, example: example as object };
};

describe('any input', () => {
  test('as a body gets a documented response, and an error neither costs nor holds money', async () => {
    const first = firstOfAll(JSON_TYPE);
    expect(first.length).toBeGreaterThan(4);
    const key = await newKey();
    const seen = new Set<string>();
    for (const { method, path, operation } of first) {
      const { schema, example } = contentOf(operation);
      const address = path.replace('{method}', 'btc-lightning').replace('{id}', key);
      const numRuns = path.includes('chat') ? CHAT_RUNS : RUNS;
      await fc.assert(
        fc.asyncProperty(credentials(operation), bodies(schema, example), async (headers, body) => {
          const before = await money();
          const answer = await world.send(method, address, { headers, body: JSON.stringify(body) });
          seen.add(`${operation.operationId} ${answer.status}`);
          expectDecent(answer, operation);
          await expectFair(answer, before.balance);
        }),
        { numRuns, seed: SEED, endOnFailure: true },
      );
    }
    const reached = [
      'createChatCompletion 200',
      'createChatCompletion 404',
      'createKey 201',
      'createTopup 201',
      'updateKey 200',
      ...first.flatMap(({ operation }) => [`${operation.operationId} 400`, `${operation.operationId} 401`]),
    ];
    if (USES_ALL_CASES) expect([...seen]).toEqual(expect.arrayContaining(reached));
  });

  test('as a form gets a documented response, and an error neither costs nor holds money', async () => {
    const forms = firstOfAll(FORM);
    expect(forms.length).toBeGreaterThan(0);
    for (const { path, operation } of forms) {
      const { schema, example } = contentOf(operation, FORM);
      await fc.assert(
        fc.asyncProperty(credentials(operation), bodies(schema, example), async (headers, body) => {
          const before = await money();
          const fields = Object.entries((body ?? {}) as object).map(([name, value]) => [name, asField(value)]);
          const answer = await fetch(`${world.api}${path}`, {
            method: 'POST',
            headers,
            body: createForm(Object.fromEntries(fields)),
          });
          const read = await readResponse(answer);
          expectDecent(read, operation);
          await expectFair(read, before.balance);
        }),
        { numRuns: RUNS, seed: SEED, endOnFailure: true },
      );
    }
  });

  test('as a conversation gets a documented response, and an error neither costs nor holds money', async () => {
    const place = document.paths['/v1/chat/completions']?.post as PathOperation;
    const { example } = contentOf(place);
    // Few parts are corrupted at a time, because a request is rejected for its first error.
    const content = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.constantFrom('Hello', ...FAULTS.map((fault) => `[[sandbox tokens=2 fault=${fault}]]`)),
      },
      { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
      { weight: 2, arbitrary: odd },
    );
    const spoilt = (...names: string[]) =>
      fc.oneof(
        { weight: 2, arbitrary: fc.constant({}) },
        {
          weight: 1,
          arbitrary: fc.tuple(fc.constantFrom(...names), odd).map((entry) => Object.fromEntries([entry])),
        },
      );
    const message = fc
      .tuple(
        fc.constantFrom('user', 'user', 'system', 'function', 'nobody'),
        content,
        spoilt('name', 'tool_calls', 'function_call', 'refusal'),
      )
      .map(([role, text, more]) => ({ role, content: text, ...more }));
    const more = fc
      .tuple(
        fc.boolean(),
        spoilt(
          'tools',
          'functions',
          'function_call',
          'response_format',
          'reasoning',
          'metadata',
          'tool_choice',
          'stop',
          'user',
        ),
      )
      .map(([stream, fields]) => ({ stream, ...fields }));
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 2 }), more, async (messages, fields) => {
        const before = await money();
        const answer = await world.post('/v1/chat/completions', { ...example, messages, ...fields }, account);
        expectDecent(answer, place);
        await expectFair(answer, before.balance);
      }),
      { numRuns: CHAT_RUNS, seed: SEED, endOnFailure: true },
    );
  });

  test('as an Anthropic message gets a documented response, and an error neither costs nor holds money', async () => {
    const place = document.paths['/v1/messages']?.post as PathOperation;
    const { example } = contentOf(place);
    const result = { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'fine' }] };
    const call = { type: 'tool_use', id: 'a', name: 'f', input: {} };
    const thought = { type: 'thinking', thinking: 'Hm', signature: 'x' };
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } };
    const document_ = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' }, title: 'T' };
    const found = { type: 'search_result', source: 'x', title: 'T', content: [{ type: 'text', text: 'fine' }] };
    /** Generates the value, unchanged or with one member replaced. */
    const perhapsSpoilt = (value: unknown) =>
      fc.oneof(
        { weight: 1, arbitrary: fc.constant(value) },
        { weight: 2, arbitrary: fc.tuple(fc.nat(9), odd).map(([at, instead]) => replacedAt(value, at, instead)) },
      );
    const block = (...blocks: object[]) => fc.oneof(...blocks.map(perhapsSpoilt), odd);
    const messages = fc
      .tuple(block(thought, call), block(result, image, document_, found), odd)
      .chain(([said, heard, anything]) =>
        fc.constantFrom<unknown>(
          [{ role: 'user', content: [heard] }],
          [
            { role: 'assistant', content: [call] },
            { role: 'user', content: [heard] },
          ],
          [
            { role: 'user', content: 'Hello' },
            { role: 'assistant', content: [said, anything] },
          ],
          [{ role: 'user', content: anything }],
          [anything],
        ),
      );
    const tool = { name: 'f', description: 'F', input_schema: { type: 'object', properties: {} }, cache_control: {} };
    const more = fc.record(
      {
        stream: fc.boolean(),
        system: fc.oneof(fc.constant('Hi'), perhapsSpoilt([{ type: 'text', text: 'Hi', cache_control: {} }])),
        tools: fc.tuple(perhapsSpoilt(tool)),
        tool_choice: perhapsSpoilt({ type: 'tool', name: 'f', disable_parallel_tool_use: true }),
        thinking: perhapsSpoilt({ type: 'enabled', budget_tokens: 1_024, display: 'omitted' }),
        output_config: perhapsSpoilt({ effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } }),
        metadata: perhapsSpoilt({ user_id: 'x' }),
        cache_control: perhapsSpoilt({ type: 'ephemeral' }),
      },
      { requiredKeys: [] },
    );
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(messages, more, async (turns, fields) => {
        const before = await money();
        const answer = await world.post(
          '/v1/messages',
          { ...example, max_tokens: 2_000, ...fields, messages: turns },
          account,
        );
        seen.add(answer.status);
        expectDecent(answer, place);
        await expectFair(answer, before.balance);
      }),
      { numRuns: CHAT_RUNS * 2, seed: SEED, endOnFailure: true },
    );
    expect([...seen].toSorted()).toEqual([200, 400]);
  });

  test('as malformed or unusual JSON gets a documented response', async () => {
    const first = places().filter(({ operation }) => operation.requestBody && !operation['x-alias-of']);
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 50 }),
      fc.constantFrom(
        '{',
        '[',
        '"',
        'null',
        '[[[[',
        '{"a":1,}',
        '{"__proto__":{"x":1}}',
        '{"constructor":{"prototype":{}}}',
        '['.repeat(LARGE),
        `{"model":${'['.repeat(LARGE)}`,
        '\ufeff{}',
        '1e999',
        '{"amount":1e999,"currency":"USD"}',
      ),
    );
    for (const [i, { method, path, operation }] of first.entries()) {
      await fc.assert(
        fc.asyncProperty(credentials(operation), texts, async (headers, body) => {
          const sent = { ...headers, 'content-type': 'application/json' };
          expectDecent(await world.send(method, path.replace(/\{\w+\}/g, 'x'), { headers: sent, body }), operation);
        }),
        { numRuns: BRIEF_RUNS, seed: SEED + i, endOnFailure: true },
      );
    }
  });

  test('in a path or a query gets a documented response', async () => {
    for (const [i, { method, path, operation }] of places().entries()) {
      const query = operation.parameters.filter(({ in: where }) => where === 'query');
      if (query.length === 0 && !path.includes('{')) continue;
      const name = fc.constantFrom(...query.map(({ name }) => name), 'x', 'constructor', '__proto__');
      const { example } = contentOf(operation);
      const body = operation.requestBody ? example : undefined;
      await fc.assert(
        fc.asyncProperty(
          credentials(operation),
          segment,
          fc.array(fc.tuple(name, fc.oneof(segment, fc.constantFrom('true', '1', '2020-01-01', '-5', '1e9')))),
          async (headers, id, fields) => {
            const search = fields.map(([key, value]) => `${key}=${encoded(value)}`).join('&');
            const address = `${path.replace(/\{\w+\}/g, encoded(id))}?${search}`;
            const answer = await world.send(method, address, { headers, body });
            // A segment that is empty, `.` or `..` results in another path.
            expectDecent(answer, /^\.{0,2}$/.test(id) ? undefined : operation);
          },
        ),
        { numRuns: BRIEF_RUNS, seed: SEED + i, endOnFailure: true },
      );
    }
  });

  test('leaves no hold open and no large event', async () => {
    expect((await money()).held_usd).toBe(0);
    const facts = await world.listEvents(account);
    // Events stay small, although texts of 100,000 characters were sent: EventStoreDB accepts at most 1 MiB. Price
    // lists are the largest events by far.
    const isLarge = (fact: (typeof facts)[number]) =>
      sizeOf(fact) > (fact.type === 'PriceListPublished' ? 256 : 16) * 1024;
    expect((await world.listEvents()).filter(isLarge)).toEqual([]);
    const count = (type: string) => facts.filter((fact) => fact.type === type).length;
    const [held, settled, released] = ['FundsHeld', 'HoldSettled', 'HoldReleased'].map(count);
    expect([settled, released].map((each) => each !== 0)).toEqual([true, true]);
    expect(held).toBe((settled ?? 0) + (released ?? 0));
  });
});

function sizeOf({ data }: { readonly data: unknown }): number {
  return Buffer.byteLength(JSON.stringify(data));
}

/** Replaces the member at a position of a depth-first traversal, in which the value itself has position 0. */
function replacedAt(value: unknown, at: number, instead: unknown): unknown {
  let left = at;
  const walk = (each: unknown): unknown => {
    if (left-- === 0) return instead;
    if (Array.isArray(each)) return each.map(walk);
    if (typeof each !== 'object' || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([name, inner]) => [name, walk(inner)]));
  };
  return walk(value);
}

/** Percent-encodes a text, with replacement characters for unpaired surrogates. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
