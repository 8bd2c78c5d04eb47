import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type CredentialFile, getShippedCatalogueDir, readProviders } from '#catalogue';
import { startSandbox } from '../sandbox.ts';

interface Entry {
  readonly provider: string;
  readonly action: string;
  readonly method: 'GET' | 'POST';
  readonly upstream: string;
  readonly upstreamMethod?: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly baseUsd: string;
  readonly costUsd?: string;
  readonly billed?: { readonly usd: string; readonly count: string };
  readonly charged: { readonly empty: boolean; readonly notFound: boolean };
  readonly results?: string;
  readonly binary?: boolean;
  readonly example: Readonly<Record<string, unknown>>;
}

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let entries: readonly Entry[];
let keys: ReadonlyMap<string, CredentialFile>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  const file = path.join(getShippedCatalogueDir(), 'data-endpoints.json');
  entries = JSON.parse(await readFile(file, 'utf8'));
  const providers = await readProviders(getShippedCatalogueDir());
  keys = new Map(providers.flatMap(({ slug, credential }) => (credential ? [[slug, credential]] : [])));
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

interface Asking {
  readonly key?: string | undefined;
  /** Where to send the key, if not where the provider requires it. */
  readonly keyIn?: CredentialFile;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/** Sends the request that the gateway sends for an entry. */
function ask(entry: Entry, { key = 'k', keyIn, fields = entry.example, signal }: Asking = {}): Promise<Response> {
  const left: Record<string, unknown> = { ...fields };
  const steps = entry.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(left[name]);
    delete left[name];
    return value;
  });
  const url = new URL(`${sandbox.url}/${entry.upstream}${steps}`);
  const headers = new Headers(entry.headers);
  const place = keyIn ?? keys.get(entry.upstream);
  if (!place) throw new Error(`no key for ${entry.upstream}`);
  if (place.in === 'query') url.searchParams.set(place.name, key);
  else if (key !== '') headers.set(place.name, `${place.prefix ?? ''}${key}`);
  const method = entry.upstreamMethod ?? entry.method;
  if (method === 'GET') for (const [name, value] of Object.entries(left)) url.searchParams.set(name, String(value));
  const body = method === 'POST' ? { body: JSON.stringify(left) } : {};
  return fetch(url, { method, headers, redirect: 'manual', ...body, ...(signal ? { signal } : {}) });
}

const named = (name: string): Entry => {
  const found = entries.find(({ provider, action }) => `${provider}/${action}` === name);
  if (!found) throw new Error(`there is no lookup ${name}`);
  return found;
};
const nameOf = ({ provider, action }: Entry) => `${provider}/${action}`;
const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };
const lines = async () => (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as Record<string, unknown>[];
// biome-ignore lint/suspicious/noExplicitAny: tests read responses of every format
const answerOf = async (response: Promise<Response>): Promise<any> => (await response).json();
const tell = (vendor: string, directive: string) =>
  fetch(`${sandbox.url}/data-vendors/${vendor}`, { method: 'PUT', body: JSON.stringify({ directive }) });
const at = (value: unknown, dotted: string): unknown =>
  dotted.split('.').reduce((found, name) => (found as Record<string, unknown> | undefined)?.[name], value);
const usdOf = (entry: Entry, answer: unknown) =>
  entry.billed
    ? Number(entry.billed.usd) * (at(answer, entry.billed.count) as readonly unknown[]).length
    : Number(entry.costUsd ?? entry.baseUsd);

describe('every lookup of the catalogue', () => {
  test('responds to its example at the price of the catalogue, and again with the same result', async () => {
    for (const entry of entries) {
      await fetch(`${sandbox.url}/bill`, { method: 'DELETE' });
      const response = await ask(entry);
      const text = await response.text();
      expect([nameOf(entry), response.status, response.status === 200 ? '' : text]).toEqual([nameOf(entry), 200, '']);
      const answer: unknown = entry.binary ? {} : JSON.parse(text);
      if (entry.results !== undefined) expect([nameOf(entry), at(answer, entry.results)]).not.toContain(undefined);
      const [line, ...others] = await lines();
      expect([nameOf(entry), Number(line?.usd), others]).toEqual([nameOf(entry), usdOf(entry, answer), []]);
      expect(line?.id).toBe(response.headers.get('x-request-id'));
      expect(await (await ask(entry)).text()).toBe(text);
    }
  });

  test('without a result is billed or not, as the catalogue specifies', async () => {
    for (const entry of entries) {
      await fetch(`${sandbox.url}/bill`, { method: 'DELETE' });
      await tell(entry.upstream, '[[sandbox fault=empty]]');
      const response = await ask(entry);
      await tell(entry.upstream, '');
      const { empty, notFound } = entry.charged;
      const billed = response.status === 404 ? notFound : empty;
      expect([nameOf(entry), [200, 404]]).toEqual([nameOf(entry), expect.arrayContaining([response.status])]);
      expect([nameOf(entry), await bill()]).toMatchObject([nameOf(entry), { lines: Number(billed) }]);
      await response.body?.cancel();
    }
  });

  test('generates no URL, email address or 11-digit phone number that could be real, except given ones', async () => {
    for (const entry of entries.filter(({ binary }) => !binary)) {
      const given = JSON.stringify(entry.example);
      const text = await (await ask(entry)).text();
      for (const [url, host = ''] of text.matchAll(/https?:\/\/([^/"?]+)/g))
        expect([nameOf(entry), url, host.endsWith('.example') || given.includes(host)]).toContain(true);
      for (const [email] of text.matchAll(/[\w.-]+@[\w.-]+/g))
        expect([nameOf(entry), email, email.endsWith('.example') || given.includes(email)]).toContain(true);
      for (const [, phone = ''] of text.matchAll(/"[^"]*(?:phone|number)[^"]*":"\+?(\d{11})"/g))
        expect([nameOf(entry), phone]).toEqual([nameOf(entry), expect.stringMatching(/^120255501\d\d$/)]);
    }
  });
});

describe('a key', () => {
  const PLACES: readonly CredentialFile[] = [
    { in: 'header', name: 'x-key' },
    { in: 'query', name: 'token' },
    { in: 'header', name: 'authorization', prefix: 'Basic ' },
  ];

  test('that is missing, invalid or in another place is rejected by every provider without a charge', async () => {
    for (const upstream of new Set(entries.map((entry) => entry.upstream))) {
      const entry = entries.find((each) => each.upstream === upstream) as Entry;
      const wrong: readonly Asking[] = [{ key: '' }, { key: 'wrong' }, ...PLACES.map((keyIn) => ({ keyIn }))];
      for (const asking of wrong) {
        const { status } = await ask(entry, asking);
        expect([upstream, asking, upstream.startsWith('google') ? [400, 403] : [401, 403]]).toEqual([
          upstream,
          asking,
          expect.arrayContaining([status]),
        ]);
      }
    }
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test.each<[string, number, unknown]>([
    ['maps/text-search/full', 400, { error: { code: 400, details: [{ reason: 'API_KEY_INVALID' }] } }],
    ['professionals/people-search', 401, { code: 'error.unauthorized' }],
    ['professionals/people-enrich', 401, { status: 401, error: { type: 'authentication_error' } }],
    ['professionals/properties-enrich', 401, { title: 'Unauthorized', status: 401 }],
    ['identity/resolve', 401, { error_message: expect.any(String) }],
    ['web/search', 401, { error: expect.any(String) }],
    ['crawler/scrape', 401, { success: false, error: 'Unauthorized: Invalid token' }],
    ['contacts/contacts-enrich', 401, { detail: expect.any(String) }],
    ['serp/news', 403, { message: 'Unauthorized.', statusCode: 403 }],
    ['forum/search', 401, { success: false, message: expect.any(String) }],
    ['records/person-search', 403, { message: 'Forbidden' }],
    ['email/email-verifier', 401, { errors: [{ id: 'authentication_failed', code: 401 }] }],
    ['influencers/enrich-by-email', 401, { detail: expect.stringContaining('token') }],
    ['x/tweets/search', 401, { title: 'Unauthorized', status: 401 }],
  ])('that is invalid is rejected in the format of its provider: %s', async (name, status, body) => {
    const response = await ask(named(name), { key: 'wrong' });
    expect([response.status, await response.json()]).toMatchObject([status, body]);
  });
});

describe('a directive', () => {
  const news = (directive: string, more: Asking = {}) =>
    ask(named('serp/news'), { ...more, fields: { q: `lamps [[sandbox ${directive}]]`, num: 2 } });

  test.each(['400', '401', '402', '403', '404', '422', '429', '500', '503'])(
    'rejects a request with %s without a charge',
    async (fault) => {
      const response = await news(`fault=${fault}`);
      expect([response.status, await response.json()]).toEqual([
        Number(fault),
        { message: expect.any(String), statusCode: Number(fault) },
      ]);
      expect(await bill()).toMatchObject({ lines: 0 });
    },
  );

  test.each([
    ['is lost', 'fault=lost', 1],
    ['is interrupted', 'fault=cut', 1],
    ['is replaced by a closed connection', 'fault=refuse', 0],
  ])('causes a response that %s (%s, lines on the bill: %i)', async (_, directive, billed) => {
    await expect(news(directive).then((response) => response.text())).rejects.toThrow();
    expect(await bill()).toMatchObject({ lines: billed });
  });

  test('can prevent a response until the client times out', async () => {
    await expect(news('fault=timeout', { signal: AbortSignal.timeout(50) })).rejects.toThrow('timeout');
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test.each([
    ['half of the JSON, without a charge', 'malformed', 'application/json', 0],
    ['half of the JSON', 'truncated', 'application/json', 1],
    ['an HTML page', 'html', 'text/html; charset=utf-8', 1],
    ['an HTML page with the type of JSON', 'disguised_html', 'application/json', 1],
  ])('causes a response that is not JSON: %s', async (_, fault, type, billed) => {
    const response = await news(`fault=${fault}`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type]);
    const text = await response.text();
    expect(() => JSON.parse(text)).toThrow();
    expect(await bill()).toMatchObject({ lines: billed });
  });

  test('redirects to another host', async () => {
    const response = await news('fault=astray');
    expect([response.status, response.headers.get('location')]).toEqual([302, expect.stringContaining('169.254')]);
  });

  test('sets the number of results, which are billed one by one for some providers', async () => {
    expect((await answerOf(news('results=30'))).news).toHaveLength(30);
    const search = named('professionals/people-search');
    const people = await answerOf(ask(search, { fields: { limit: 2, query: '[[sandbox results=7]]' } }));
    expect(people.people).toHaveLength(7);
    const [, line] = await lines();
    expect(line).toMatchObject({
      model: 'fullenrich/people/search',
      units: { unit: 'result', quantity: 7 },
      usd: '0.105',
    });
  });

  test('sets the size of a response: JSON remains valid, and an image has the same start', async () => {
    const response = await news('bytes=200000');
    expect(response.headers.get('content-length')).toBe('200000');
    expect(((await response.json()) as { news: unknown }).news).toHaveLength(2);
    const picture = await ask(named('maps/solar/rgb-image'), { fields: { id: '[[sandbox bytes=300000]]' } });
    const bytes = Buffer.from(await picture.arrayBuffer());
    expect([picture.headers.get('content-type'), bytes.length]).toEqual(['image/tiff', 300_000]);
    expect(bytes.toString('latin1', 0, 4)).toBe('II*\0');
  });

  test('sets the exact text of a response', async () => {
    const response = await news(`text=${JSON.stringify('{"news": "none"}')}`);
    expect([response.status, await response.text()]).toEqual([200, '{"news": "none"}']);
    expect(await bill()).toMatchObject({ lines: 1 });
  });

  test('causes a pending response without a charge', async () => {
    expect((await news('fault=pending')).status).toBe(202);
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('causes a response that repeats the request, or an error that repeats the key', async () => {
    const echoed = await (await news('fault=echo', { key: 'secret-1' })).json();
    expect(echoed).toMatchObject({
      news: [{}, {}],
      echo: { url: '/serper/news', headers: { 'x-api-key': 'secret-1' } },
    });
    const told = await news('fault=tells_key', { key: 'secret-1' });
    expect([told.status, await told.text()]).toEqual([400, expect.stringContaining('secret-1')]);
  });

  test('may be nested in a body, or in a parameter of a query', async () => {
    const deep = { fields: { limit: 2, current_company_domains: [{ value: '[[sandbox fault=500]]' }] } };
    expect((await ask(named('professionals/people-search'), deep)).status).toBe(500);
    const query = { fields: { words: '[[sandbox fault=500]]' } };
    expect((await ask(named('x/tweets/search'), query)).status).toBe(500);
  });

  test('must name its provider if the provider also serves the web searches of chats', async () => {
    const search = (directive: string) => ask(named('web/search'), { fields: { query: `[[sandbox ${directive}]]` } });
    expect([(await search('fault=500')).status, (await search('fault=500 at=exa')).status]).toEqual([200, 500]);
  });

  test('can be set for a provider and removed, unless the provider is unknown or the directive invalid', async () => {
    const place = () => ask(named('maps/place-details/full'));
    await tell('google-maps', '[[sandbox fault=404]]');
    expect((await place()).status).toBe(404);
    await tell('google-maps', '');
    expect((await place()).status).toBe(200);
    expect((await tell('nobody', '')).status).toBe(400);
    expect((await tell('google-maps', '[[sandbox nonsense]]')).status).toBe(400);
  });
});

test('Google requires a field mask, and leaves out a field that is not in it', async () => {
  const search = named('maps/text-search/partial');
  expect((await ask({ ...search, headers: {} })).status).toBe(400);
  const { places } = await answerOf(ask(search));
  expect(Object.keys(places[0])).not.toContain('rating');
});

test('a request to a provider is recorded with its headers and body, even if its key is invalid', async () => {
  await fetch(`${sandbox.url}/data-vendors/received`, { method: 'DELETE' });
  await ask(named('serp/news'), { key: 'wrong' });
  const received = await (await fetch(`${sandbox.url}/data-vendors/received`)).json();
  expect(received).toMatchObject(
    [
      { vendor: 'serper', method: 'POST', url: '/serper/news', headers: { 'x-api-key': 'wrong' }, body: /lighthouse/ },
    ].map((each) => ({ ...each, body: expect.stringMatching(each.body) })),
  );
});

test('an unknown route is rejected in the format of its provider', async () => {
  const response = await ask({ ...named('crawler/scrape'), path: '/crawl' });
  expect([response.status, await response.json()]).toEqual([404, { success: false, error: expect.any(String) }]);
});
