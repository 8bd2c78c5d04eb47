import { fetch402, fetchWithL402, fetchWithMpp } from '@getalby/lightning-tools';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Clock } from '#application';
import { verify } from '#audit';
import { readCatalogue, readProviders } from '#catalogue';
import { type JsonObject } from '#kernel';
import {
  formatTotalCost,
  isEstimated,
  isExplained,
  listCharges,
  sampleCases,
  shiftClock,
  type TestAccount,
  TestWorld,
  timeOut,
} from '#testing';
import { respondWithJson, type StubHandler, StubServer } from '../../../../libs/testing/src/servers/stub-server.ts';
import { toDataEndpointList } from './data-wire.ts';

const secretOf = (slug: string) => `secret/of+${slug}=0123456789`;

/** Returns settings that connect every data provider to the sandbox, each with its own credential. */
function vendors(): Record<string, string> {
  const all = readProviders().filter(({ credential }) => credential);
  return Object.fromEntries(
    all.flatMap(({ slug, env, sandboxPath }) => [
      [`${env}_BASE_URL`, `sandbox:${sandboxPath}`],
      [`${env}_API_KEY`, secretOf(slug)],
    ]),
  );
}

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open({
    ...vendors(),
    CHALLENGES_PER_MINUTE: '1000',
    CHALLENGES_PER_MINUTE_IN_ALL: '1000',
  });
  account = await world.createAccount(105);
});
afterAll(() => world.close());

/** The exchange rate of the sandbox. */
const SATS_PER_USD = 1_000;
/** Number of lookups that an account pays for, unless all cases are tested. */
const CHARGED_LOOKUPS = 14;
/** Number of lookups that are sold to anonymous callers, unless all cases are tested. */
const SOLD_LOOKUPS = 9;
/** How many pay-per-request lookups run concurrently at most. */
const AT_ONCE = 8;
const NEWS = '/v1/data/api/serp/news';

/** A row of `GET /v1/data/endpoints`. */
interface Listed {
  readonly path: string;
  readonly method: string;
  readonly example: Readonly<Record<string, string>>;
  readonly price_usd: number;
}

function ask(method: string, path: string, fields: JsonObject, by = account) {
  const headers = { authorization: `Bearer ${by.apiKey}` };
  if (method === 'POST') return world.send(method, path, { headers, body: fields });
  return world.send(method, `${path}?${new URLSearchParams(fields as Record<string, string>)}`, { headers });
}

async function told(vendor: string, directive: string): Promise<void> {
  const body = JSON.stringify({ directive: directive && `[[sandbox ${directive}]]` });
  await fetch(`${world.sandbox}/data-vendors/${vendor}`, { method: 'PUT', body });
}

async function received() {
  const all = await fetch(`${world.sandbox}/data-vendors/received`);
  return (await all.json()) as { method: string; url: string; headers: Record<string, string>; body: string }[];
}

beforeEach(async () => {
  await world.bill.clear();
  await fetch(`${world.sandbox}/data-vendors/received`, { method: 'DELETE' });
});

const entries = readCatalogue().dataEndpoints;
const pathOf = ({ provider, action }: { provider: string; action: string }) =>
  provider === 'x' ? `/v1/data/x/${action}` : `/v1/data/api/${provider}/${action}`;

test('lists the lookups for callers without a credential, grouped by category', async () => {
  const { status, body } = await world.get('/v1/data/endpoints');
  expect([status, body.status, body.total, body.data.length]).toEqual([200, 'success', entries.length, entries.length]);
  const classes = body.data.map(({ provider }: { provider: string }) => provider);
  expect(classes.filter((each: string, i: number) => each !== classes[i - 1])).toHaveLength(new Set(classes).size);
  expect(body.data.find(({ path }: { path: string }) => path === '/v1/data/api/web/search')).toMatchObject({
    method: 'POST',
    provider: 'web',
    action: 'search',
    price_usd: 0.0115,
    payment_methods: ['balance', 'l402'],
    limits: { numResults: 10 },
    example: { query: expect.any(String) },
    parameters: { type: 'object' },
  });
  expect((await world.get('/data/endpoints')).body).toEqual(body);
  for (const row of toDataEndpointList(readCatalogue(), false)) expect(row.payment_methods).toEqual(['balance']);
});

test('charges the listed price for lookups, and records the cost that their providers invoice', async () => {
  const before = (await world.listEvents(account)).length;
  const all: readonly Listed[] = (await world.get('/v1/data/endpoints')).body.data;
  const listed = sampleCases(all, CHARGED_LOOKUPS);
  for (const { path, method, example, price_usd } of listed) {
    const { status, headers, text } = await ask(method, path, example);
    expect([path, status, status === 200 ? '' : text]).toEqual([path, 200, '']);
    expect([path, Number(headers.get('x-cost-usd'))]).toEqual([path, price_usd]);
    expect(headers.get('x-cost-usd')).toMatch(/^\d+\.\d+$/);
    expect([path, headers.get('cache-control')]).toEqual([path, 'no-store']);
  }
  const charges = listCharges((await world.listEvents(account)).slice(before));
  expect(charges.map(({ items }) => items.length)).toEqual(listed.map(() => 1));
  for (const charge of charges) expect(isExplained(charge, readCatalogue().priceList.lines)).toBe(true);
  expect((await world.bill.fetchTotal()).total_usd).toBe(formatTotalCost(charges));
  const lines = new Map((await world.bill.fetchLines()).map(({ id, usd }) => [id, usd]));
  expect(charges.map(({ items: [item] }) => lines.get(item?.vendorId ?? ''))).toEqual(
    charges.map((charge) => formatTotalCost([charge])),
  );
  const history = (await world.get('/queries/history?query_type=data_enrichment&page_count=100', account)).body.data;
  expect(history.map(({ price_in_usd }: { price_in_usd: number }) => price_in_usd).toReversed()).toEqual(
    listed.map(({ price_usd }) => price_usd),
  );
  const model = listed.at(-1)?.path.replace(/^\/v1\/data\/(api\/)?/, '');
  expect(history[0]).toMatchObject({ model, input_count: 0, output_count: 1, query_source: 'api' });
  expect(history[0]).toMatchObject({ input_unit: null, output_unit: 'lookups' });
  await expectNothingOfOurs();
});

test('sells lookups to anonymous callers at the same price, and records the invoiced cost', async () => {
  const before = (await world.listEvents()).length;
  const wallet = { payInvoice: async ({ invoice }: { invoice: string }) => (await world.payInvoice(invoice)).body };
  const all: readonly Listed[] = (await world.get('/v1/data/endpoints')).body.data;
  const listed = sampleCases(all, SOLD_LOOKUPS);
  const clients = [fetch402, fetchWithL402, fetchWithMpp] as const;
  const had = async ({ path, method, example, price_usd }: Listed, i: number) => {
    const inBody = { body: JSON.stringify(example), headers: { 'content-type': 'application/json' } };
    const address = method === 'POST' ? path : `${path}?${new URLSearchParams(example)}`;
    const sent = { method, ...(method === 'POST' ? inBody : {}) };
    const client = clients[i % clients.length] as typeof fetch402;
    const { status, headers } = await client(`${world.api}${address}`, sent, { wallet });
    const said = [Number(headers.get('x-cost-usd')), headers.has('payment-receipt'), headers.get('cache-control')];
    expect([path, status, ...said]).toEqual([path, 200, price_usd, true, 'private, no-store']);
  };
  for (let i = 0; i < listed.length; i += AT_ONCE) await Promise.all(listed.slice(i, i + AT_ONCE).map(had));
  const facts = (await world.listEvents()).slice(before);
  const inSats = (price: number) => Math.ceil(Number((price * SATS_PER_USD).toFixed(6)));
  expect(
    facts.flatMap((fact) => (fact.type === 'ChallengeIssued' ? [Number(fact.data.units)] : [])).toSorted(),
  ).toEqual(listed.map(({ price_usd }) => inSats(price_usd) * 1_000).toSorted());
  const charges = listCharges(facts);
  expect(charges).toHaveLength(listed.length);
  expect((await world.bill.fetchTotal()).total_usd).toBe(formatTotalCost(charges));
  await expectNothingOfOurs();
});

/**
 * Checks the requests to providers. A credential in a header is that of the provider. Other headers are usual ones or
 * those of catalogue entries. Neither the API key nor the credit id of the account was sent.
 */
async function expectNothingOfOurs(): Promise<void> {
  const usual = ['accept', 'connection', 'content-length', 'content-type', 'host', 'user-agent'];
  for (const { url, headers, body, method } of await received()) {
    const slug = url.split('/')[1] ?? '';
    const { credential } = readProviders().find((each) => each.slug === slug) ?? {};
    const ofEntries = entries
      .filter(({ upstream }) => upstream === slug)
      .flatMap((each) => Object.keys(each.headers ?? {}));
    const { [credential?.name ?? '']: secret, ...others } = headers;
    if (credential?.in === 'header')
      expect([url, secret]).toEqual([url, `${credential.prefix ?? ''}${secretOf(slug)}`]);
    expect([url, Object.keys(others).filter((name) => ![...usual, ...ofEntries].includes(name))]).toEqual([url, []]);
    expect([url, headers['user-agent'], method === 'GET' ? body : '']).toEqual([url, 'Countinghouse/1', '']);
    const all = JSON.stringify([url, others, body]);
    expect(all).not.toContain(account.apiKey);
    expect(all).not.toContain(account.creditId);
  }
}

test('returns the body of the provider unchanged, but not its request id', async () => {
  const { headers, text } = await ask('POST', NEWS, { q: 'ledgers', num: 3 });
  const [asked] = await received();
  const itself = await fetch(`${world.sandbox}${asked?.url}`, {
    method: 'POST',
    headers: asked?.headers as Record<string, string>,
    body: asked?.body as string,
  });
  expect(text).toBe(await itself.text());
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(headers.get('x-request-id')).not.toBe(itself.headers.get('x-request-id'));
});

test('forwards the fields of a request to the provider, but no header of the client', async () => {
  const headers = {
    authorization: `Bearer ${account.apiKey}`,
    cookie: 'a=b',
    traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`,
    'x-forwarded-for': '10.0.0.1',
    'x-goog-fieldmask': '*',
    'x-query-source': 'ui',
    'x-api-key': account.apiKey,
    'idempotency-key': 'once',
    'user-agent': 'Client/1',
    referer: 'https://client.example',
    'accept-language': 'br',
  };
  const example = '?placeId=ChIJexampleexampleexample';
  const { status } = await world.send('GET', `/v1/data/api/maps/place-details/partial${example}`, { headers });
  expect(status).toBe(200);
  const [asked] = await received();
  expect(asked?.url).toBe('/google-maps/v1/places/ChIJexampleexampleexample');
  expect(asked?.headers['x-goog-fieldmask']).toMatch(/^id,/);
  await expectNothingOfOurs();
});

describe('a request that is not a valid lookup', () => {
  test.each<[string, string, number, string | null]>([
    ['GET', '/v1/data/api/web/nothing', 404, null],
    ['POST', '/v1/data/api/nobody/search', 404, null],
    ['POST', '/v1/data/api/constructor/__proto__', 404, null],
    ['POST', '/v1/data/api/web', 404, null],
    ['POST', '/v1/data/api/web/', 404, null],
    ['POST', '/v1/data/api/web/search/more', 404, null],
    ['POST', '/v1/data/api/web%2Fsearch', 404, null],
    ['GET', '/v1/data/api/x/tweets/user', 404, null],
    ['GET', '/v1/data/maps/place-details/full', 404, null],
    ['GET', '/v1/data/x/nothing', 404, null],
    ['GET', '/v1/data/api/web/search', 405, 'POST'],
    ['POST', '/v1/data/api/maps/place-details/full', 405, 'GET'],
    ['HEAD', '/data/api/maps/place-details/full?placeId=x', 405, 'GET'],
    ['HEAD', '/v1/data/x/tweets/user?username=x', 405, 'GET'],
    ['POST', '/v1/data/x/tweets/user', 405, 'GET, HEAD'],
    ['DELETE', NEWS, 405, 'GET, HEAD, POST'],
  ])('(%s %s) is rejected with %d', async (method, path, status, allow) => {
    const headers = { authorization: `Bearer ${account.apiKey}` };
    const answer = await fetch(`${world.api}${path}`, { method, headers });
    await answer.text();
    expect([answer.status, answer.headers.get('allow')]).toEqual([status, allow]);
  });

  test('is rejected without an event or a provider call for invalid fields, its size or an unknown key', async () => {
    const before = (await world.listEvents(account)).length;
    for (const [fields, param] of [
      [{ q: 'x', num: 101 }, 'num'],
      [{ q: 'x', Num: 1 }, 'Num'],
      [{ q: 'x', num: 1e9 }, 'num'],
      [{}, 'q'],
    ] as const) {
      const { status, body } = await ask('POST', NEWS, fields);
      expect([status, body.error.param]).toEqual([400, param]);
    }
    expect((await ask('GET', '/v1/data/x/tweets/user', { username: 'ada', max_results: '101' })).body.message).toBe(
      'max_results must be an integer from 1 to 100 here',
    );
    expect((await ask('POST', `${NEWS}?num=1000`, { q: 'x' })).status).toBe(400);
    expect((await world.post(NEWS, { q: 'x'.repeat(2_000_000) }, account)).status).toBe(413);
    expect((await world.post(NEWS, { q: 'x' }, { ...account, apiKey: 'sk-unknown' })).status).toBe(401);
    expect((await world.listEvents(account)).slice(before)).toEqual([]);
    expect(await received()).toEqual([]);
  });
});

const SETTLED = ['HoldSettled'];
const RELEASED = ['HoldReleased'];
const ABSORBED = ['HoldReleased', 'ChargeAbsorbed'];

interface Expected {
  readonly types: readonly string[];
  readonly spent: string;
  readonly owed: string;
  /** Set if it differs from `owed`. */
  readonly invoiced?: string;
}

const NOTHING = '0.000000000000';
const FREE: Expected = { types: RELEASED, spent: NOTHING, owed: '0' };

/**
 * Runs one lookup of a new account and checks that no money stays held. Returns the response, the history record, the
 * charges, the types of the events after the hold, and the amounts that were spent, recorded as cost and invoiced.
 */
async function outcomeOf(method: string, path: string, fields: JsonObject) {
  const by = await world.createAccount(1.05);
  const answer = await ask(method, path, fields, by);
  const facts = await world.listEvents(by);
  const held = facts.findIndex(({ type }) => type === 'FundsHeld');
  const charges = listCharges(facts);
  const { balance, held_usd } = (await world.post('/credits/balance', undefined, by)).body;
  expect(held_usd).toBe(0);
  const [record] = (await world.get('/queries/history', by)).body.data;
  expect(record).toMatchObject({ query_type: 'data_enrichment', price_in_usd: Number((1.05 - balance).toFixed(12)) });
  const types = facts.slice(held + 1).map(({ type }) => type);
  const spent = (1.05 - balance).toFixed(12);
  return {
    answer,
    record,
    charges,
    types,
    spent,
    owed: formatTotalCost(charges),
    invoiced: (await world.bill.fetchTotal()).total_usd,
  };
}

describe('a failing provider', () => {
  // After a problem of the operator's account, the provider rests for a few seconds.
  beforeEach(() => {
    shiftClock(world.getService(Clock), 6_000);
  });

  const LOST: Expected = { types: ABSORBED, spent: NOTHING, owed: '0.04' };
  test.each<[string, number, string, Expected]>([
    ['fault=400', 400, 'invalid_request', FREE],
    ['fault=401', 503, 'upstream_unavailable', FREE],
    ['fault=402', 503, 'upstream_unavailable', FREE],
    ['fault=403', 502, 'upstream_error', FREE],
    ['fault=404', 404, 'not_found', FREE],
    ['fault=422', 422, 'invalid_request_error', FREE],
    ['fault=429', 429, 'rate_limit_exceeded', FREE],
    ['fault=500', 502, 'upstream_error', FREE],
    ['fault=503', 503, 'upstream_unavailable', FREE],
    ['fault=lost', 503, 'upstream_unavailable', LOST],
    ['fault=html', 502, 'upstream_error', LOST],
    // The gateway cannot know that this response is not invoiced.
    ['fault=malformed', 502, 'upstream_error', { ...LOST, invoiced: '0' }],
    ['fault=cut', 502, 'upstream_error', LOST],
    ['bytes=9000000', 502, 'upstream_error', LOST],
  ])(
    'returns for %s the status %d and the code %s',
    async (directive, status, code, { types, spent, owed, invoiced = owed }) => {
      const { answer, ...outcome } = await outcomeOf('POST', NEWS, { q: `x [[sandbox ${directive}]]` });
      expect([answer.status, answer.body.error.code, answer.headers.get('x-cost-usd')]).toEqual([status, code, null]);
      expect(outcome).toMatchObject({ types, spent, owed, invoiced });
      expect(outcome.record.error_code).not.toBeNull();
    },
  );

  test('is called again after a status 500, and its response is charged once', async () => {
    const { answer, types, spent, owed, invoiced } = await outcomeOf('POST', NEWS, {
      q: '[[sandbox id=again fault=500 fault_times=2]]',
    });
    expect([answer.status, types, spent, owed, invoiced]).toEqual([200, SETTLED, '0.046000000000', '0.04', '0.04']);
  });

  test('makes the operator absorb the possible cost of a response that is lost (GET) or times out (POST)', async () => {
    await told('twit', 'fault=lost');
    const lost = await outcomeOf('GET', '/v1/data/x/users/by/username', { username: 'ada_example' });
    await told('twit', '');
    expect([lost.answer.status, lost.types, lost.owed, lost.invoiced]).toEqual([503, ABSORBED, '0.01', '0.01']);
    expect(lost.charges.map(isEstimated)).toEqual([true]);
    const late = await timeOut(world, () => outcomeOf('POST', NEWS, { q: '[[sandbox fault=timeout]]' }));
    expect([late.answer.status, late.types, late.spent, late.owed]).toEqual([504, ABSORBED, NOTHING, '0.04']);
  });

  test('does not reveal to the customer the credential that its response contains', async () => {
    for (const directive of ['fault=tells_key', 'fault=echo']) {
      const { answer } = await outcomeOf('POST', NEWS, { q: `[[sandbox ${directive}]]` });
      expect(answer.text).not.toContain(secretOf('serper'));
      expect(answer.text).not.toContain(JSON.stringify(secretOf('serper')).slice(1, -1));
    }
  });
});

describe('a lookup without results', () => {
  test.each<[string, string, JsonObject, number, Expected]>([
    // The provider charges for the search.
    ['serper', 'serp/news', { q: 'x' }, 200, { types: SETTLED, spent: '0.046000000000', owed: '0.04' }],
    // The provider charges only for results.
    ['apollo', 'people/people-enrich', { email: 'a@b.example' }, 200, { types: SETTLED, spent: NOTHING, owed: '0' }],
    ['fullenrich', 'professionals/people-search', { limit: 5 }, 200, { types: SETTLED, spent: NOTHING, owed: '0' }],
    ['company-enrich', 'professionals/org-enrich', { domain: 'b.example' }, 404, FREE],
    // The provider charges for a 404.
    [
      ...(['whitepages', 'records/property-search'] as const),
      { street: '1 Nowhere', zipcode: '00000' },
      ...([404, { types: SETTLED, spent: '0.506000000000', owed: '0.44' }] as const),
    ],
  ])(
    'is charged at %s (%s) only if the provider charges for it',
    async (vendor, lookup, fields, status, { types, spent, owed }) => {
      await told(vendor, 'fault=empty');
      const outcome = await outcomeOf('POST', `/v1/data/api/${lookup}`, fields);
      await told(vendor, '');
      expect(outcome).toMatchObject({ types, spent, owed, invoiced: owed });
      expect([outcome.answer.status, outcome.answer.headers.get('x-cost-usd')]).toEqual([
        status,
        status === 200 ? String(Number(spent)) : null,
      ]);
      expect(outcome.charges.flatMap(({ items }) => items).every(({ estimated }) => !estimated)).toBe(true);
    },
  );
});

test('charges for a page that the customer chose, even if it is too long to be returned', async () => {
  const fields = { url: 'https://example.com', includeTags: ['[[sandbox bytes=9000000]]'] };
  const { answer, ...outcome } = await outcomeOf('POST', '/v1/data/api/crawler/scrape', fields);
  expect([answer.status, answer.body.message]).toEqual([502, 'The response of the provider is too long']);
  expect(outcome).toMatchObject({ types: SETTLED, spent: '0.014490000000', owed: '0.0126', invoiced: '0.0126' });
  expect(outcome.record.error_code).toBe('answer_too_long');
});

test('charges for a match even if it has none of the requested fields', async () => {
  const fields = { email: 'ada@example.com', data_include: 'nothing' };
  const found = await outcomeOf('POST', '/v1/data/api/professionals/people-enrich', fields);
  expect(found.answer.body).toEqual({ status: 200, likelihood: 8, data: {} });
  expect(found).toMatchObject({ types: SETTLED, spent: '0.322000000000', owed: '0.28', invoiced: '0.28' });
});

test('records a cost per result, and charges a price that covers the cost', async () => {
  const search = '/v1/data/api/professionals/people-search';
  for (const [limit, cost] of [
    [3, '0.045'],
    [10, '0.15'],
  ] as const) {
    await world.bill.clear();
    const found = await outcomeOf('POST', search, { limit, current_company_domains: [{ value: 'example.com' }] });
    expect([found.answer.status, found.owed, found.invoiced]).toEqual([200, cost, cost]);
    expect(Number(found.spent)).toBeGreaterThanOrEqual(Number(cost));
  }
  await told('fullenrich', 'fault=lost');
  await world.bill.clear();
  const lost = await outcomeOf('POST', search, { limit: 4 });
  await told('fullenrich', '');
  expect([lost.answer.status, lost.types, lost.owed]).toEqual([503, ABSORBED, '0.06']);
});

describe('the response of a provider', () => {
  const vendor = new StubServer();
  let api: string;
  beforeAll(async () => {
    const { providers } = world.foundation.settings;
    const reach = { baseUrl: await vendor.listen(), credential: secretOf('fullenrich') };
    api = await world.addGateway({ providers: new Map([...providers, ['fullenrich', reach]]) });
  });
  afterAll(() => vendor.close());

  const search = async (answer: StubHandler) => {
    vendor.handler = answer;
    const by = await world.createAccount(1.05);
    const said = await world.post('/v1/data/api/professionals/people-search', { limit: 4 }, by, api);
    const [
      {
        items: [item],
      } = { items: [] },
    ] = listCharges(await world.listEvents(by));
    return { said, item, spent: 1.05 - (await world.post('/credits/balance', undefined, by)).body.balance };
  };

  test.each<[string, unknown, number, boolean]>([
    ['as many as requested', Array(4).fill({}), 4, false],
    ['more than requested', Array(9).fill({}), 4, true],
    ['a number', 3, 3, false],
    ['an implausible number', 1e15, 4, true],
    ['a text', 'many', 4, true],
    ['an object', { a: 1 }, 4, true],
  ])('determines the recorded number of results, or an estimate of it: %s', async (_, people, result, estimated) => {
    const { said, item, spent } = await search(respondWithJson({ people }));
    expect([said.status, item?.usage, item?.estimated]).toEqual([200, { lookup: 1, result }, estimated]);
    expect(spent).toBeCloseTo(0.1725, 12);
  });

  test('is not charged if it has status 202, and the same Idempotency-Key runs the lookup again', async () => {
    const { said, item, spent } = await search(respondWithJson({ people: [{}] }, 202));
    expect([said.status, said.body, said.headers.get('x-cost-usd')]).toEqual([202, { people: [{}] }, '0']);
    expect([item, spent]).toEqual([undefined, 0]);
    const by = await world.createAccount(1.05);
    const headers = { authorization: `Bearer ${by.apiKey}`, 'idempotency-key': 'until it is found' };
    const again = () => world.send('POST', '/v1/data/api/professionals/people-search', { headers, body: {}, api });
    expect((await again()).status).toBe(202);
    vendor.handler = respondWithJson({ people: [{}] });
    const found = await again();
    expect([found.status, found.headers.get('x-cost-usd')]).toEqual([200, '0.1725']);
    expect((await again()).headers.get('idempotent-replayed')).toBe('true');
  });

  test.each([400, 404, 422])(
    'has its error message returned to the customer with status %d, and stored in no event',
    async (status) => {
      const { said } = await search(respondWithJson({ message: 'There is no Ada Example in Springfield' }, status));
      expect([said.status, said.body.message]).toEqual([status, 'There is no Ada Example in Springfield']);
      const facts = JSON.stringify(await world.listEvents(), (_, value) =>
        typeof value === 'bigint' ? String(value) : value,
      );
      expect(facts).toContain('The provider rejected the request');
      expect(facts).not.toContain('Springfield');
    },
  );

  test('is returned as JSON even if its media type is HTML, and a redirect is not followed', async () => {
    const { said } = await search((response) => {
      response.writeHead(203, { 'content-type': 'text/html', 'set-cookie': 'a=b', 'x-frame-options': 'none' });
      response.end('{"people": ["<script>"]}');
    });
    expect([said.status, said.headers.get('content-type'), said.headers.get('set-cookie')]).toEqual([
      200,
      'application/json; charset=utf-8',
      null,
    ]);
    const asked = vendor.requests.length;
    const { said: astray } = await search((response) => response.writeHead(302, { location: '/secrets' }).end());
    expect([astray.status, vendor.requests.length]).toEqual([502, asked + 1]);
  });
});

describe('a file', () => {
  const IMAGE = '/v1/data/api/maps/solar/rgb-image?id=ZXhhbXBsZS1yZ2ItaW1hZ2U';
  const headers = () => ({ authorization: `Bearer ${account.apiKey}` });

  test('is returned with its media type, and with its price in a header', async () => {
    const answer = await fetch(`${world.api}${IMAGE}`, { headers: headers() });
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect([answer.status, answer.headers.get('content-type'), bytes.subarray(0, 4).toString('latin1')]).toEqual([
      200,
      'image/tiff',
      'II*\0',
    ]);
    const { price_usd } = (await world.get('/v1/data/endpoints')).body.data.find(
      ({ action }: { action: string }) => action === 'solar/rgb-image',
    );
    expect(Number(answer.headers.get('x-cost-usd'))).toBe(price_usd);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test.each<[string, number, string]>([
    ['fault=404', 404, 'not_found'],
    ['fault=403', 502, 'upstream_error'],
    ['fault=html', 502, 'upstream_error'],
    ['fault=svg', 502, 'upstream_error'],
    ['fault=500', 502, 'upstream_error'],
  ])('costs nothing if the provider responds with %s; the status is %d', async (directive, status, code) => {
    await told('google-solar', directive);
    const before = await world.fetchBalance(account);
    const { status: answered, body } = await world.send('GET', IMAGE, { headers: headers() });
    await told('google-solar', '');
    expect([answered, body.error.code, await world.fetchBalance(account)]).toEqual([status, code, before]);
  });

  test('is aborted if the provider interrupts it, and is not charged', async () => {
    await told('google-solar', 'fault=broken');
    const before = await world.fetchBalance(account);
    const answer = await fetch(`${world.api}${IMAGE}`, { headers: headers() });
    await expect(answer.arrayBuffer()).rejects.toThrow();
    await told('google-solar', '');
    await world.waitUntil(async () => (await world.post('/credits/balance', undefined, account)).body.held_usd === 0);
    expect(await world.fetchBalance(account)).toBe(before);
  });
});

test('runs a lookup by GET once per Idempotency-Key', async () => {
  const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': 'a lookup' };
  const address = `${pathOf({ provider: 'x', action: 'users/by/username' })}?username=ada_example`;
  const before = await world.fetchBalance(account);
  const first = await world.send('GET', address, { headers });
  const again = await world.send('GET', address.replace('/v1', ''), { headers });
  expect([first.status, again.status, again.text]).toEqual([200, 200, first.text]);
  expect([again.headers.get('idempotent-replayed'), again.headers.get('x-cost-usd')]).toEqual(['true', '0.0115']);
  expect(Number(before) - Number(await world.fetchBalance(account))).toBeCloseTo(0.0115, 12);
  for (const more of ['1', '/']) expect((await world.send('GET', `${address}${more}`, { headers })).status).toBe(409);
});

test('runs only as many concurrent lookups as the balance pays for, and rejects the others with 402', async () => {
  const poor = await world.createAccount(0.105);
  const all = await Promise.all(Array.from({ length: 9 }, () => ask('POST', NEWS, { q: 'x' }, poor)));
  expect(all.map(({ status }) => status).toSorted()).toEqual([200, 200, ...Array(7).fill(402)]);
  expect((await world.bill.fetchTotal()).total_usd).toBe('0.08');
});

test('leaves the ledger at drift 0 after all of these lookups', async () => {
  const lines: string[] = [];
  await verify(world.foundation, (line) => lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
});
