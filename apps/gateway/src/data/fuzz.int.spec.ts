/**
 * Random requests for lookups. Every status is an expected one, and none is 500. An error costs nothing unless the
 * lookup charges for a 404. No money stays held, and requests to providers stay within the caps of the catalogue.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type DataEndpoint, readCatalogue, readProviders, toDataPath } from '#catalogue';
import { sampleSize, type TestAccount, TestWorld, USES_ALL_CASES } from '#testing';

const RUNS = sampleSize(400, 50);
const SEED = 20_261_122;
const STATUSES = [200, 400, 402, 404, 405, 413, 414, 415, 422, 429, 431, 502, 503];

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  world.contracts.allowInvalidRequests();
  account = await world.createAccount(315);
});
afterAll(() => world.close());

const entries = readCatalogue().dataEndpoints;

const TEXTS = [
  '',
  ' ',
  '0',
  '1',
  '5',
  '1e9',
  '-1',
  '05',
  '\0',
  '\ud800',
  '..',
  '.',
  '../../v1/places',
  '%2e%2e%2f',
  'a/b?c#d',
  '[[sandbox fault=500]]',
  '[[sandbox fault=404]]',
  '[[sandbox fault=empty]]',
  '[[sandbox results=3000]]',
  '__proto__',
  'true',
  '*',
  'x'.repeat(300),
  '🎉',
  '\r\nx: y',
  'sandbox',
  'https://example.com/x',
  'ada@example.com',
  '12345',
];
const odd = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<unknown>(...TEXTS) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(null, true, 0, -1, 0.5, 1, 5, 1_000, 1e308, [], {}, [[]], ['a'], {
      value: 'a',
    }),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>('x'.repeat(5_000), Array(300).fill('x'), deep(80)) },
);

function deep(levels: number): unknown {
  return levels === 0 ? 1 : { a: deep(levels - 1) };
}

/** Field names that a provider may interpret in its own way, names that every object inherits, and odd names. */
const NAMES = [
  'fields',
  '$fields',
  'key',
  'api_key',
  'access_token',
  'callback',
  'toString',
  'constructor',
  '__proto__',
  'x[]',
  '',
];

/** Returns a name three times, which makes it likelier, and variants that a provider may treat as the same field. */
function spellings(name: string): readonly string[] {
  const snake = name.replace(/[A-Z]/g, (each) => `_${each.toLowerCase()}`);
  return [
    name,
    name,
    name,
    name.toUpperCase(),
    snake,
    snake.replaceAll('_', '-'),
    `${name}[]`,
    `${name}[0]`,
    name.replaceAll('s', 'ſ'),
  ];
}

interface Asked {
  readonly entry: DataEndpoint;
  readonly method: string;
  readonly path: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly stray: Readonly<Record<string, unknown>>;
}

const sometimes = <T>(usual: T, rare: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rare });

const asked: fc.Arbitrary<Asked> = fc.constantFrom(...entries).chain((entry) => {
  const known = [...Object.keys(entry.caps ?? {}), ...Object.keys(entry.always ?? {}), ...Object.keys(entry.example)];
  const name = fc.constantFrom(...known.flatMap(spellings), ...NAMES);
  const changes = fc.array(fc.tuple(name, odd), { maxLength: 2 });
  const kept = sometimes(Object.entries(entry.example), fc.subarray(Object.entries(entry.example)));
  const usual = `/v1${toDataPath(entry)}`;
  const segment = fc.constantFrom(...TEXTS).map((each) => encodeURIComponent(each.toWellFormed()));
  return fc.record({
    entry: fc.constant(entry),
    method: sometimes<string>(entry.method, fc.constantFrom('GET', 'POST', 'HEAD', 'PUT')),
    path: sometimes(
      usual,
      fc.oneof(
        fc.constant(usual.slice(3)),
        segment.map((each) => `${usual}/${each}`),
        segment.map((each) => `/v1/data/api/${each}/search`),
      ),
    ),
    fields: fc.tuple(kept, changes).map(([some, more]) => Object.fromEntries([...some, ...more])),
    stray: sometimes({}, fc.dictionary(fc.constantFrom(...NAMES), odd, { maxKeys: 2 })),
  });
});

const CLIENTS = {
  cookie: 'c=1',
  'x-goog-fieldmask': '*',
  'x-client-secret': 'of the client',
  referer: 'https://client.example',
};

test('returns an expected status for every request, and calls providers within the caps of the catalogue', async () => {
  const seen = new Set<number>();
  await fetch(`${world.sandbox}/data-vendors/received`, { method: 'DELETE' });
  await fc.assert(
    fc.asyncProperty(asked, async (each) => {
      const before = await money();
      const { status, cost, text } = await send(each);
      seen.add(status);
      const about = `${each.method} ${each.path} ${status} ${text.slice(0, 300)}`;
      expect([about, STATUSES]).toEqual([about, expect.arrayContaining([status])]);
      if (each.method !== 'HEAD' && status >= 400)
        expect([about, JSON.parse(text).statusCode]).toEqual([about, status]);
      const { balance, held_usd } = await money();
      const spent = Number((before.balance - balance).toFixed(12));
      expect([about, held_usd]).toEqual([about, 0]);
      if (status === 200) expect([about, spent]).toEqual([about, cost]);
      else if (!each.entry.charged.notFound) expect([about, spent]).toEqual([about, 0]);
    }),
    { numRuns: RUNS, seed: SEED, endOnFailure: true },
  );
  if (USES_ALL_CASES) expect([...seen]).toEqual(expect.arrayContaining([200, 400, 404, 405, 502]));
  const requests = (await (await fetch(`${world.sandbox}/data-vendors/received`)).json()) as readonly Received[];
  expect(requests.length).toBeGreaterThan(RUNS / 4);
  for (const request of requests) expectFitting(request);
  const facts = await world.listEvents(account);
  const count = (...types: readonly string[]) => facts.filter(({ type }) => types.includes(type)).length;
  expect(count('FundsHeld')).toBe(count('HoldSettled', 'HoldReleased'));
});

const money = async () => (await world.post('/credits/balance', undefined, account)).body;

/** Uses `fetch`, because the client of the test world parses JSON responses, and a response to HEAD has no body. */
async function send({ method, path, fields, stray }: Asked) {
  const inBody = method === 'POST' || method === 'PUT';
  const query = new URLSearchParams(pairs(inBody ? stray : { ...fields, ...stray })).toString();
  const headers = { ...CLIENTS, authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' };
  const body = inBody ? { body: JSON.stringify(fields) } : {};
  const answer = await fetch(`${world.api}${path}${query && `?${query}`}`, { method, headers, ...body });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, cost: Number(answer.headers.get('x-cost-usd')), text: bytes.toString() };
}

function pairs(fields: object): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]) =>
    [value]
      .flat()
      .map((each): [string, string] => [
        name,
        (typeof each === 'string' ? each : (JSON.stringify(each) ?? '')).toWellFormed(),
      ]),
  );
}

interface Received {
  readonly vendor: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const USUAL = ['accept', 'connection', 'content-length', 'content-type', 'host', 'user-agent'];

/**
 * Checks that a request to a provider is one of its lookups, within the caps of the catalogue entry. A body must have
 * the fixed values of the entry. Only usual headers, headers of the entry and the credential may be sent. The request
 * contains neither a credential of the account nor the `x-client-secret` or the `referer` of the client.
 */
function expectFitting({ vendor, method, url, headers, body }: Received): void {
  const { credential, sandboxPath } = readProviders().find(({ slug }) => slug === vendor) as never as {
    readonly credential: { readonly in: string; readonly name: string };
    readonly sandboxPath: string;
  };
  const { pathname, searchParams } = new URL(url, world.sandbox);
  const about = `${method} ${url} ${body}`;
  const fitting = entries.filter((each) => {
    const template = each.path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '[\\w.-]+');
    const isThere = new RegExp(`^${sandboxPath}${template}$`).test(decodeURIComponent(pathname));
    return each.upstream === vendor && (each.upstreamMethod ?? each.method) === method && isThere;
  });
  expect([about, fitting.length > 0]).toEqual([about, true]);
  const said = fitting.flatMap((each) => Object.keys(each.headers ?? {}));
  const own = credential.in === 'header' ? [credential.name] : [];
  expect([about, Object.keys(headers).filter((name) => ![...USUAL, ...said, ...own].includes(name))]).toEqual([
    about,
    [],
  ]);
  for (const each of fitting)
    for (const [name, value] of Object.entries(each.headers ?? {}))
      if (fitting.length === 1) expect([about, headers[name]]).toEqual([about, value]);
  const fields: Record<string, unknown> = method === 'GET' ? Object.fromEntries(searchParams) : JSON.parse(body);
  for (const { caps = {}, always = {} } of fitting.slice(0, 1)) {
    for (const [name, { max }] of Object.entries(caps)) {
      const alike = Object.keys(fields).filter(
        (each) => each.toLowerCase().replace(/[^a-z0-9]/g, '') === name.toLowerCase().replace(/[^a-z0-9]/g, ''),
      );
      for (const each of alike) {
        const value = fields[each];
        expect([about, Array.isArray(value) ? value.length : Number(value)]).toEqual([about, expect.any(Number)]);
        expect([about, (Array.isArray(value) ? value.length : Number(value)) <= max]).toEqual([about, true]);
      }
    }
    expect([about, fields]).toEqual([about, expect.objectContaining(method === 'GET' ? {} : always)]);
  }
  const everything = JSON.stringify([url, headers, body]);
  for (const ours of [account.apiKey, account.creditId, CLIENTS['x-client-secret'], CLIENTS.referer])
    expect([about, everything.includes(ours)]).toEqual([about, false]);
}
