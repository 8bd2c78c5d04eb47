import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, test } from '@jest/globals';
import { type Hold, UpstreamError } from '#application';
import { listRequirements, readCatalogue, readProviders } from '#catalogue';
import { createProviders } from './open-providers.ts';

const hold = {} as Hold;
const timeouts = { connectTimeoutMs: 10_000, idleTimeoutMs: 10_000 };
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

  test('lists its capabilities but cannot be called without a credential', () => {
    expect(providers.supports('two', 'chat')).toBe(true);
    expect(providers.findUnavailableReason('two')).toBe('is not configured on this gateway');
    expect(refused('two')).toMatchObject({
      code: 'upstream_unavailable',
      message: '"two" is not configured on this gateway',
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
    const signal = AbortSignal.timeout(10_000);
    return provider.get(hold, 'one', 'embeddings')({ model: 'm', body: { input: 'x' }, signal } as never);
  };

  await expect(call()).rejects.toThrow();
  connection.credential = 'sk-after!';
  await expect(call()).rejects.toMatchObject({ upstreamMessage: 'not ********* or *********' });

  expect(sent).toEqual(['Bearer sk-before', 'Bearer sk-after!']);
  await provider.close();
  server.close();
});

test('the shipped providers have all capabilities that the shipped catalogue requires', async () => {
  const shipped = createProviders(readProviders(), { ...timeouts, providers: new Map() });
  const demands = listRequirements(readCatalogue());
  expect(demands.length).toBeGreaterThan(0);
  expect(demands.filter(({ upstream, capability }) => !shipped.supports(upstream, capability))).toEqual([]);
  await shipped.close();
});
