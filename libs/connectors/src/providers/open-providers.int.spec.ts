import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Hold, UpstreamError } from '#application';
import { type Capability, listRequirements, readCatalogue, readProviders } from '#catalogue';
import { type ConnectedProviders, createProviders } from './open-providers.ts';
import type { CredentialLocation } from './provider.ts';

const hold = {} as Hold;
const timeouts = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
const reach = { baseUrl: 'http://127.0.0.1:9/v1', credential: 'k' };
const vendor = (slug: string, protocol: string) => ({
  slug,
  protocol,
  env: slug.toUpperCase(),
  baseUrl: `https://${slug}.example`,
});
const providers = createProviders([vendor('one', 'openai'), vendor('two', 'openai'), vendor('odd', 'morse')], {
  ...timeouts,
  providers: new Map([
    ['one', reach],
    ['odd', reach],
  ]),
});
afterAll(() => providers.close());

function refused(upstream: string): UpstreamError {
  try {
    providers.get(hold, upstream, 'chat');
  } catch (error) {
    expect(error).toBeInstanceOf(UpstreamError);
    return error as UpstreamError;
  }
  throw new Error('the capability was returned');
}

describe('a provider', () => {
  test("supports chat, responses and embeddings, but no search, with OpenAI's protocol", async () => {
    for (const capability of ['chat', 'responses', 'embeddings'] as const) {
      expect(providers.supports('one', capability)).toBe(true);
      expect(providers.get(hold, 'one', capability)).toBeInstanceOf(Function);
    }
    expect(providers.supports('one', 'search')).toBe(false);
  });

  test('lists its capabilities but cannot be called without settings', () => {
    expect(providers.supports('two', 'chat')).toBe(true);
    expect(providers.findMissingSetting('two')).toBe('TWO_API_KEY');
    expect(refused('two')).toMatchObject({
      code: 'upstream_unavailable',
      message: '"two" is not available here: it requires TWO_API_KEY',
    });
  });

  test('does not offer chat with an unknown protocol', () => {
    expect(providers.supports('odd', 'chat')).toBe(false);
    expect(refused('odd').message).toBe('"odd" does not offer chat');
  });

  test('cannot be called if it does not exist', () => {
    expect(providers.supports('three', 'chat')).toBe(false);
    expect(refused('three').code).toBe('upstream_unavailable');
  });
});

test('the next call uses a replaced credential, and responses hide both credentials', async () => {
  const sent: unknown[] = [];
  const server = createServer((request, response) => {
    sent.push(request.headers.authorization);
    response.writeHead(400).end('{"error":{"message":"not sk-before or sk-after!"}}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credential: 'sk-before',
  };
  const provider = createProviders([vendor('one', 'openai')], {
    ...timeouts,
    providers: new Map([['one', connection]]),
  });
  const call = () => {
    const signal = new AbortController().signal;
    return provider.get(hold, 'one', 'embeddings')({ model: 'm', body: { input: 'x' }, signal } as never);
  };

  await expect(call()).rejects.toThrow();
  connection.credential = 'sk-after!';
  await expect(call()).rejects.toMatchObject({ upstreamMessage: 'not ********* or *********' });

  expect(sent).toEqual(['Bearer sk-before', 'Bearer sk-after!']);
  await provider.close();
  server.close();
});

describe('without a credential', () => {
  const sent: [url: string, headers: IncomingHttpHeaders][] = [];
  const server = createServer(({ url = '', headers }, response) => {
    sent.push([url, headers]);
    response.writeHead(400).end('{}');
  }).listen(0, '127.0.0.1');
  let without: ConnectedProviders;
  const locations: Record<string, CredentialLocation> = {
    'data in a header': { in: 'header', name: 'x-api-key' },
    'data in the query': { in: 'query', name: 'key' },
  };
  const slugs = [
    'openai',
    'anthropic',
    'exa',
    'fal',
    'google',
    'deepgram',
    'elevenlabs',
    'ehbp',
    ...Object.keys(locations),
  ];
  beforeAll(async () => {
    if (!server.listening) await once(server, 'listening');
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const configs = slugs.map((slug) => ({
      ...vendor(slug, slug.split(' ')[0] as string),
      credential: locations[slug],
    }));
    const connection = { baseUrl, credential: undefined };
    without = createProviders(configs, { ...timeouts, providers: new Map(slugs.map((slug) => [slug, connection])) });
  });
  afterAll(async () => {
    await without.close();
    server.close();
  });

  const media = { model: 'm', parameters: {}, wireMapping: {}, prompt: 'p', count: 1, images: [] };
  const search = { query: 'q', maxResults: 1, includeDomains: [], excludeDomains: [], location: undefined };
  const lookup = { method: 'GET', path: '/x', query: [['key', 'customer']], headers: {} };
  const sealed = { enclave: '', encapsulatedKey: 'aa', stream: false, body: Readable.from([Buffer.from('x')]) };
  test.each<[string, Capability, object]>([
    ['openai', 'embeddings', { model: 'm', body: { input: 'x' } }],
    ['openai', 'speech', { ...media, input: 'x', voice: 'v' }],
    ['anthropic', 'chat', { model: 'm', body: { model: 'm', messages: [{ role: 'user', content: 'x' }] } }],
    ['exa', 'search', search],
    ['exa', 'data', lookup],
    ['fal', 'images', media],
    ['google', 'images', media],
    ['deepgram', 'speech', { ...media, input: 'x', voice: 'v' }],
    ['elevenlabs', 'speech', { ...media, input: 'x', voice: 'v' }],
    ['ehbp', 'privateChat', sealed],
    ['data in a header', 'data', lookup],
    ['data in the query', 'data', lookup],
  ])('a call of %s (%s) has none, in no header and no parameter', async (slug, capability, call) => {
    sent.length = 0;
    const send = without.get(hold, slug, capability) as unknown as (call: object) => Promise<unknown>;
    await Promise.resolve(send({ ...call, signal: new AbortController().signal })).catch(() => {});
    expect(sent.length).toBeGreaterThan(0);
    for (const [url, headers] of sent) {
      expect(Object.keys(headers).filter((name) => /auth|api-key/.test(name))).toEqual([]);
      expect(`${url} ${JSON.stringify(headers)}`).not.toMatch(/undefined|sandbox|Bearer/);
    }
  });
});

test('the shipped providers have all capabilities that the shipped catalogue requires', async () => {
  const shipped = createProviders(readProviders(), { ...timeouts, providers: new Map() });
  const demands = listRequirements(readCatalogue());
  expect(demands.length).toBeGreaterThan(0);
  expect(demands.filter(({ upstream, capability }) => !shipped.supports(upstream, capability))).toEqual([]);
  await shipped.close();
});
