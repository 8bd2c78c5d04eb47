import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Catalogue, type DataEndpoint, getShippedCatalogueDir, readCatalogue, toDataPath } from '#catalogue';
import { calculateCost, calculateMaxPrice } from '#domain';
import { formatUsd } from '#kernel';
import { assertDataProvidersExist, type DataEndpointFile, parseDataEndpoints } from './data-endpoint-file.ts';

/** The lookups of the specification (4.10) by the gateway's provider names. Some have no price in the specification. */
const LISTED = `
  POST maps text-search/full 0.08
  POST maps text-search/partial 0.02
  POST maps nearby-search/full 0.08
  POST maps nearby-search/partial 0.02
  GET maps place-details/full 0.05
  GET maps place-details/partial 0.02
  GET maps solar/building-insights
  GET maps solar/data-layers
  GET maps solar/rgb-image
  GET maps aerial-view/lookup-video
  POST maps aerial-view/render-video
  POST people people-search 0.02
  POST people org-search 0.02
  POST people people-enrich 0.0495
  POST people org-enrich 0.0495
  POST professionals people-search
  POST professionals company-search
  POST professionals people-enrich
  POST professionals org-enrich
  POST professionals properties-enrich
  POST identity resolve
  POST identity enrich
  POST identity validate-emails
  POST web search 0.01
  POST web find-similar 0.01
  POST web answer 0.01
  POST web contents 0.002
  POST crawler scrape 0.0126
  POST crawler search 0.0252
  POST contacts contacts-enrich 0.20
  POST contacts profile-scrape 0.04
  POST serp news 0.04
  POST serp shopping 0.04
  POST serp images
  POST serp people-image-search
  POST serp lens
  POST forum search 0.02
  POST forum post-comments 0.02
  POST records person-search 0.44
  POST records property-search 0.44
  POST email email-verifier 0.03
  POST influencers enrich-by-email 0.40
  POST influencers enrich-by-social 0.40
  GET x tweets/search 0.01
  GET x tweets/by/id 0.01
  GET x tweets/user 0.01
  GET x tweets/replies 0.01
  GET x tweets/quote_tweets 0.01
  GET x tweets/retweeted_by 0.01
  GET x users/search 0.01
  GET x users/by/id 0.01
  GET x users/by/username 0.01
  GET x users/followers 0.01
  GET x users/following 0.01
  GET x lists/by/id 0.01`;
const listed = LISTED.trim()
  .split(/\n\s*/)
  .map((row) => row.split(' ') as [method: string, provider: string, action: string, base?: string]);

/** Names of fields that request a number of results, or have a list of inputs. */
const MULTIPLIES =
  /^(limit|num|size|page_?size|per_page|max_?results?|num_?results|max_?result_?count|count|records|urls|ids|emails|sources|subpages)$/i;

const catalogue = readCatalogue();
const { dataEndpoints } = catalogue;
const find = (provider: string, action: string) => catalogue.findDataEndpoint(provider, action) as DataEndpoint;
const sizeOf = (value: unknown) => (Array.isArray(value) ? value.length : Number(value));
const named = (each: DataEndpoint) => `${each.provider}/${each.action}`;
/** The maximum cost and the maximum price of a lookup. */
const amounts = ({ endpoint, billed, caps }: DataEndpoint) => {
  const most = { lookup: 1, ...(billed ? { result: caps?.[billed.cap]?.max ?? Number.NaN } : {}) };
  return { cost: calculateCost(most, endpoint.tariff.prices), price: calculateMaxPrice(most, endpoint.tariff.prices) };
};

describe('the shipped lookups', () => {
  test('are exactly those of the specification', () => {
    const rows = dataEndpoints.map(({ method, provider, action }) => `${method} ${provider} ${action}`);
    expect(rows.sort()).toEqual(listed.map(([method, ...name]) => [method, ...name.slice(0, 2)].join(' ')).sort());
  });

  test.each(listed.filter(([, , , base]) => base !== undefined))('have %s %s %s for %s plus the margin', (...row) => {
    const [, provider, action, base] = row;
    expect(Number(formatUsd(amounts(find(provider, action)).price))).toBeCloseTo(Number(base) * 1.15, 9);
  });

  test('have a maximum price above 0 that covers their maximum cost', () => {
    const dear = dataEndpoints.filter((each) => amounts(each).cost > amounts(each).price || amounts(each).price === 0n);
    expect(dear.map(named)).toEqual([]);
  });

  test('have paths in the two forms of the specification', () => {
    const paths = dataEndpoints.map(toDataPath);
    expect(paths).toContain('/data/api/maps/text-search/full');
    expect(paths).toContain('/data/x/tweets/by/id');
  });

  test('have an example that matches their schema', () => {
    const options = { strict: false, validateFormats: false };
    const [bodies, queries] = [new Ajv2020(options), new Ajv2020({ ...options, coerceTypes: true })];
    const wrong = dataEndpoints.filter(({ method, parameters = {}, example }) => {
      return !(method === 'GET' ? queries : bodies).validate(parameters, { ...example });
    });
    expect(wrong.map(named)).toEqual([]);
    expect(dataEndpoints.filter(({ parameters }) => parameters === undefined).map(named)).toEqual([]);
  });

  test('have an example within their caps', () => {
    const over = dataEndpoints.filter(({ caps = {}, example }) =>
      Object.entries(caps).some(([field, { max }]) => sizeOf(example[field] ?? 0) > max),
    );
    expect(over.map(named)).toEqual([]);
  });

  test('have a cap for every field that by its name multiplies the work of a provider', () => {
    const open = dataEndpoints.flatMap((each) => {
      const { properties = {} } = (each.parameters ?? {}) as { readonly properties?: object };
      const counts = Object.keys(properties).filter((field) => MULTIPLIES.test(field) && !each.caps?.[field]);
      return counts.map((field) => `${named(each)} ${field}`);
    });
    expect(open).toEqual([]);
    expect(dataEndpoints.filter(({ caps }) => caps).length).toBeGreaterThan(20);
  });

  test('have caps only for fields of their schema', () => {
    const unknown = dataEndpoints.filter(({ caps = {}, parameters }) => {
      const { properties = {} } = (parameters ?? {}) as { readonly properties?: object };
      return Object.keys(caps).some((field) => !Object.hasOwn(properties, field));
    });
    expect(unknown.map(named)).toEqual([]);
  });

  test('allow no unknown fields at providers that could charge more for them', () => {
    const isClosed = ({ parameters }: DataEndpoint) => parameters?.additionalProperties === false;
    const isDear = ({ upstream, method }: DataEndpoint) =>
      ['exa', 'firecrawl', 'clado', 'minerva', 'whitepages', 'influencers-club', 'scrape-creators'].includes(
        upstream,
      ) ||
      // Google accepts the fields to return as a query parameter, and its price depends on them.
      (upstream.startsWith('google-') && method === 'GET');
    expect(dataEndpoints.filter((each) => isDear(each) && !isClosed(each)).map(named)).toEqual([]);
    expect(isClosed(find('people', 'people-enrich'))).toBe(true);
    const fields = dataEndpoints.flatMap(({ parameters }) => Object.keys((parameters?.properties ?? {}) as object));
    expect(fields.filter((field) => /^(reveal_phone|run_waterfall)_/.test(field))).toEqual([]);
  });

  test('have patterns that take linear time for long inputs', () => {
    const patterns = [
      ...JSON.stringify(dataEndpoints.map(({ parameters }) => parameters)).matchAll(/"pattern":("(?:[^"\\]|\\.)+")/g),
    ].map(([, pattern = '']) => pattern);
    expect(patterns.length).toBeGreaterThan(9);
    const expressions = [...new Set(patterns)].map((pattern) => new RegExp(JSON.parse(pattern), 'u'));
    const long = 1_000_000; // quadratic work would take longer than a test may
    for (const start of ['', 'a@', 'https://', 'https://www.reddit.com/'])
      for (const part of ['.', 'a', 'a.', '1', '-.', 'x.com.', ':1', '@a.']) {
        const text = `${start}${part.repeat(long / part.length)}\n`;
        for (const expression of expressions) expression.test(text);
      }
  });

  test.each([
    ['https://example.com', true],
    ['http://box.com:8080/x.com?at=x.com', true],
    ['https://notlinkedin.com/', true],
    ['https://x.com/ada', false],
    ['https://X.com', false],
    ['https://mobile.twitter.com./a', false],
    ['https://ada@x.com/', false],
    ['https://x.com\\a', false],
    ['https://x%2Ecom/', false],
    ['https://ｘ.com/', false],
    ['https://x.\tcom/', false],
    ['ftp://example.com', false],
  ])('accept only pages that the provider scrapes at its normal price: %j: %s', (url, isOne) => {
    const { parameters = {} } = find('crawler', 'scrape');
    expect(new Ajv2020({ strict: false }).validate(parameters, { url })).toBe(isOne);
  });

  test('are marked as `guessed` exactly if the specification has no price for them', () => {
    const shipped = JSON.parse(readFileSync(path.join(getShippedCatalogueDir(), 'data-endpoints.json'), 'utf8'));
    const guessed = parseDataEndpoints(shipped).filter((each) => each.guessed);
    const unpriced = listed.filter(([, , , base]) => base === undefined);
    expect(guessed.map((each) => `${each.provider} ${each.action}`).sort()).toEqual(
      unpriced.map(([, ...name]) => name.join(' ')).sort(),
    );
  });
});

describe('a file of data endpoints', () => {
  const good: DataEndpointFile = {
    provider: 'web',
    action: 'search',
    method: 'POST',
    name: 'Search',
    description: 'A search.',
    upstream: 'v',
    path: '/search',
    baseUsd: '0.01',
    margin: '1.15',
    charged: { empty: true, notFound: false, failed: false },
    example: { id: 'a' },
  };
  const capped = { caps: { limit: { max: 10 } } };
  const billed = { usd: '0.001', count: 'results', cap: 'limit' };

  test.each<[string, Partial<Record<keyof DataEndpointFile, unknown>>, string]>([
    ['of an unknown class', { provider: 'web_search' }, 'provider of data endpoint "web_search/search" must be one of'],
    ['with an action that is not a path', { action: '../keys' }, 'must be lower case words separated by slashes'],
    ['with an unknown method', { method: 'PUT' }, 'method of data endpoint "web/search" must be one of GET, POST'],
    ['of the provider x with POST', { provider: 'x' }, 'method of data endpoint "x/search" must be GET for x'],
    ['at a path with ..', { path: '/v1/../keys' }, 'path of data endpoint "web/search" must be a path of plain'],
    ['at a path with a query', { path: '/v1?a=b' }, 'path of data endpoint "web/search" must be a path of plain'],
    [
      'at a path with a field that its example does not have',
      { path: '/v1/{placeId}' },
      'must have the string field placeId, which is part of its path',
    ],
    ['with a reserved header', { headers: { authorization: 'x' } }, 'headers.authorization of data endpoint'],
    ['with a header of two lines', { headers: { 'x-a': 'b\r\nc: d' } }, 'must be printable ASCII'],
    ['without a price', { baseUsd: '' }, 'must be an amount of USD as text'],
    ['sold below cost', { margin: '0.9' }, 'margin of data endpoint "web/search" must not be below 1'],
    ['with a default above its cap', { caps: { limit: { max: 5, default: 6 } } }, 'must not exceed the cap'],
    ['with a cap of 0', { caps: { limit: { max: 0 } } }, 'caps.limit.max of data endpoint "web/search" must be'],
    ['billed without a cap', { billed }, 'billed.cap of data endpoint "web/search" must name a field that has a cap'],
    ['billed above its base price', { ...capped, billed: { ...billed, usd: '0.0011' } }, 'for 10 results'],
    [
      'that does not charge for empty results but has no path of results',
      { charged: { ...good.charged, empty: false } },
      'results of data endpoint "web/search" is required',
    ],
    ['with an invalid schema', { parameters: { properties: { q: { type: 'txt' } } } }, 'parameters.properties.q.type'],
    ['with an unknown field', { key: 'k' } as never, 'data endpoint "web/search" has an unknown field "key"'],
  ])('is rejected with a lookup %s', (_, change, message) => {
    expect(() => parseDataEndpoints([good])).not.toThrow();
    expect(() => parseDataEndpoints([{ ...good, ...change }])).toThrow(message);
  });

  test('is rejected with a duplicate lookup, an unknown provider or a provider without a credential', () => {
    expect(() => parseDataEndpoints([good, good])).toThrow('data endpoint "/data/api/web/search" is defined twice');
    const vendor = { slug: 'v', protocol: 'data', env: 'V', baseUrl: 'https://v.example', sandboxPath: '/v' };
    const silent = { ...vendor, onDisconnect: 'bills on' } as const;
    expect(() => assertDataProvidersExist([good], [])).toThrow('names the provider "v", which does not exist');
    expect(() => assertDataProvidersExist([good], [silent])).toThrow('which does not specify how its key is sent');
    expect(assertDataProvidersExist([good], [{ ...silent, credential: { in: 'query', name: 'key' } }])).toEqual([good]);
  });

  test('results in prices per lookup, and in costs per result if results are billed', () => {
    const sold = (more: object) =>
      Catalogue.fromFiles([], { dataEndpoints: parseDataEndpoints([{ ...good, ...capped, ...more }]) }).priceList.lines;
    const name = { of: 'web/search', provider: 'web', creditor: 'v' };
    const lookup = { unit: 'lookup', per: 1, price: '11500000000' };
    expect(sold({})).toEqual([{ ...name, prices: [{ ...lookup, cost: '10000000000' }] }]);
    expect(sold({ billed })).toEqual([{ ...name, prices: [lookup, { unit: 'result', per: 1, cost: '1000000000' }] }]);
  });
});
