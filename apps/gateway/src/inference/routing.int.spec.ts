import { readFile, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { DomainEvent } from '#domain';
import { createTestEndpoint, createTestModel, sampleCases, TEST_MODELS, type TestAccount, TestWorld } from '#testing';

const offer = (provider: string, upstream: string, input: string, more: object = {}) =>
  createTestEndpoint(provider, upstream, { usdPerMillionTokens: { input, output: '0.6' }, ...more });

/** Nothing listens at Groq's address in this world. */
const MODELS = [
  createTestModel('test/falls-back', [offer('Gone', 'groq', '0.01'), offer('There', 'openai', '0.15', { zdr: true })], {
    variants: { thinking: 'test/two' },
  }),
  createTestModel('test/routed', [offer('Router', 'openrouter', '0.01', { routes: true, parameters: 'openrouter' })]),
  createTestModel('test/gone', [offer('Gone', 'groq', '0.01')]),
  createTestModel('test/two', [offer('Dear', 'openai', '0.9'), offer('Cheap', 'openai', '0.15')]),
  createTestModel('test/few', [
    offer('Many', 'openai', '0.9'),
    offer('Few', 'openai', '0.15', { parameters: ['max_tokens'] }),
  ]),
  createTestModel('test/equals', [offer('One', 'openai', '0.15'), offer('Other', 'openai', '0.15')]),
];

const sent: Readonly<Record<string, unknown>>[] = [];
/** Simulates a router, and records in `sent` the bodies that it receives. */
const router = createServer(async (request, response) => {
  if (request.method === 'GET') return response.end('{}'); // a check of the key
  let text = '';
  for await (const piece of request) text += piece;
  sent.push(JSON.parse(text));
  if (text.includes('"nobody"')) return response.writeHead(404).end('{"error":{"message":"No allowed providers"}}');
  const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }];
  const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
  response.end(JSON.stringify({ id: 'x', created: 1, model: 'm', choices, usage }));
});

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  await new Promise<void>((listening) => router.listen(0, '127.0.0.1', listening));
  const address = `http://127.0.0.1:${(router.address() as AddressInfo).port}/v1`;
  world = await TestWorld.open({ GROQ_BASE_URL: 'http://127.0.0.1:9/v1', OPENROUTER_BASE_URL: address }, MODELS);
  account = await world.createAccount(1);
});
afterAll(async () => {
  await world.close();
  await new Promise((closed) => router.close(closed));
});

const ask = (name: string, more: object = {}, directive = 'tokens=4') =>
  world.sendChat(account, directive, { model: name, ...more });

async function lastCharge() {
  const facts = await world.listEvents();
  const settled = facts.filter(({ type }) => type === 'HoldSettled') as Extract<DomainEvent, { type: 'HoldSettled' }>[];
  return settled.at(-1)?.data.charge;
}

/** The costs of Gemini 2.5 Pro in USD per million tokens, per request and per image. */
const OF_PRO = { prompt: 1.25, completion: 10, request: 0, image: 0.00625 };
/** Allows endpoints that are more expensive than the listed price. */
const ANY = { provider: { allow_fallbacks: true } };

describe('a request', () => {
  test('falls back to the next endpoint if the first one is unavailable, and the charge names both', async () => {
    const answer = await ask('test/falls-back', ANY);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ model: 'test/falls-back', provider: 'There' });
    expect(await lastCharge()).toMatchObject({
      items: [{ provider: 'there' }],
      attempts: [
        { provider: 'gone', outcome: 'upstream_unavailable' },
        { provider: 'there', outcome: 'ok' },
      ],
    });
  });

  test('avoids an endpoint that failed recently', async () => {
    await ask('test/falls-back', ANY);
    expect((await lastCharge())?.attempts).toMatchObject([{ provider: 'there', outcome: 'ok' }]);
  });

  test('falls back to the next endpoint for streams as well', async () => {
    const answer = await ask('test/falls-back', { stream: true, provider: { order: ['gone'] } });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"provider":"There"');
  });

  test('fails without a charge if fallbacks are not allowed', async () => {
    const balance = await world.fetchBalance(account);
    const answer = await ask('test/falls-back', { provider: { only: ['gone'], allow_fallbacks: false } });
    expect(answer.status).toBe(503);
    expect(await world.fetchBalance(account)).toBe(balance);
  });

  test.each(sampleCases([false, true], 1))(
    'is served only by the listed providers if it has an order and allows no fallbacks (stream: %s)',
    async (stream) => {
      const order = async (...names: string[]) =>
        ask('test/falls-back', { stream, provider: { order: names, allow_fallbacks: false } });
      expect((await order('gone')).status).toBe(503);
      expect((await order('gone')).status).toBe(503);
      expect((await order('there')).status).toBe(200);
      expect((await order('gone', 'there')).text).toContain('"provider":"There"');
      const { status, body } = await order('nobody', 'none');
      expect([status, body.error.param]).toEqual([404, 'provider']);
      expect(body.message).toMatch(
        /: gone is not in the order.*; nobody does not serve this model; none does not serve this model$/,
      );
    },
  );

  test('is rejected if the router has none of the requested providers', async () => {
    const balance = await world.fetchBalance(account);
    for (const provider of [{ only: ['nobody'] }, { order: ['nobody'], allow_fallbacks: false }]) {
      const { status, body } = await ask('test/routed', { provider });
      expect([status, body.error.param, body.error.code]).toEqual([404, 'provider', 'no_endpoints_found']);
      expect(body.message).toContain('router has none of the requested providers');
    }
    expect((await ask('test/routed', { provider: { only: ['somebody'] } })).status).toBe(200);
    expect(await world.fetchBalance(account)).not.toBe(balance);
  });

  test('costs at most the listed price without preferences, even if that makes it fail', async () => {
    expect((await ask('test/falls-back')).status).toBe(503);
    for (const model of ['test/two', 'test/equals', 'test/few', 'deepseek/deepseek-r1']) {
      const { pricing } = (await world.get(`/v1/models/${model}`)).body;
      const { usage } = (await ask(model, { tools: [], temperature: 1 }, 'tokens=40')).body;
      const listed =
        usage.prompt_tokens * Number(pricing.prompt) + usage.completion_tokens * Number(pricing.completion);
      expect(usage.cost).toBeLessThanOrEqual(listed + 1e-12);
    }
  });

  test('with several choices is sent to an endpoint that supports them, else it is rejected', async () => {
    const { body } = await ask('test/few', { n: 2 });
    expect([body.provider, body.choices.length]).toEqual(['Many', 2]);
    const facts = (await world.listEvents()).length;
    for (const model of ['anthropic/claude-haiku-4.5', 'google/gemini-2.5-pro', 'openai/gpt-5-codex']) {
      const refused = await ask(model, { n: 2 });
      expect([refused.status, refused.body.error.param]).toEqual([400, 'n']);
      expect(refused.body.message).toContain('returns one choice only');
      expect((await ask(model, { n: 1 })).status).toBe(200);
    }
    expect((await world.listEvents()).length).toBe(facts + 2 * 3);
  });

  test('is charged for the endpoint that served it', async () => {
    await ask('test/two', { provider: { order: ['dear'] } });
    expect(await lastCharge()).toMatchObject({ items: [{ provider: 'dear' }] });
    await ask('test/two:floor');
    expect(await lastCharge()).toMatchObject({ items: [{ provider: 'cheap' }] });
  });

  test('reaches the endpoint of the earlier turns of its conversation, on every gateway', async () => {
    const other = await world.addGateway();
    for (const first of sampleCases(['Hello', 'Good morning', 'Good evening', 'Good night'], 2)) {
      const messages = [{ role: 'user', content: first }];
      const providers = new Set<string>();
      for (let turn = 0; turn < 4; turn++) {
        const body = { model: 'test/equals', max_tokens: 4, messages };
        const answer = await world.post('/v1/chat/completions', body, account, turn % 2 === 0 ? world.api : other);
        providers.add(answer.body.provider);
        messages.push(answer.body.choices[0].message, { role: 'user', content: `Turn ${turn}` });
      }
      expect([first, providers.size]).toEqual([first, 1]);
    }
  });

  test('is distributed among endpoints with equal prices', async () => {
    const served = new Set<string>();
    for (let i = 0; i < 100 && served.size < 2; i++)
      served.add((await ask('test/equals', {}, `tokens=${i + 1}`)).body.provider);
    expect(served).toEqual(new Set(['One', 'Other']));
    for (let i = 0; i < 2; i++)
      expect((await ask('test/equals', { provider: { order: ['other'] } })).body.provider).toBe('Other');
  });

  test('drops zdr for a web search if the model has the routing rule webSearchDropsZdr', async () => {
    const provider = { zdr: true };
    expect((await ask('claude-opus-4.6', { provider })).status).toBe(404);
    expect((await ask('claude-opus-4.6:online', { provider })).status).toBe(200);
  });

  test.each<[string, object, unknown]>([
    ['google/gemini-2.5-pro', {}, { max_price: OF_PRO }],
    ['google/gemini-2.5-pro', { only: ['google-vertex'], unknown: 1 }, { only: ['google-vertex'], max_price: OF_PRO }],
    ['google/gemini-2.5-pro:nitro', {}, { sort: 'throughput', max_price: OF_PRO }],
    [
      'google/gemini-2.5-flash',
      { order: ['x'], max_price: { prompt: 9 } },
      { ignore: ['google-ai-studio'], max_price: { prompt: 0.3, completion: 2.5, request: 0, image: 0.0015 } },
    ],
    ['perplexity/sonar', {}, { max_price: { prompt: 1, completion: 1, request: 0.005, image: 0.005 } }],
  ])(
    'for %s with %j is forwarded to the router with a maximum price, and preferences that model rules may replace',
    async (name, provider, expected) => {
      const preferences = Object.keys(provider).length > 0 ? { provider } : {};
      expect((await ask(name, preferences)).status).toBe(200);
      expect(sent.at(-1)?.provider).toEqual(expected);
    },
  );

  test('returns 400 if the provider rejects it', async () => {
    const answer = await ask('test/two', { temperature: 2, logit_bias: 'nonsense' });
    expect(answer.status).toBe(400);
  });

  test.each([
    ['a model without an endpoint that retains nothing', 'test/two', { provider: { zdr: true } }, 404],
    ['an unknown variant', 'test/two:extended', {}, 404],
    ['a model that does not exist', 'test/none:nitro', {}, 404],
    ['invalid preferences', 'test/two', { provider: { sort: 'best' } }, 400],
    ['a private model', 'private/any', {}, 400],
  ])('is rejected for %s before money is held', async (_, name, more, status) => {
    const facts = (await world.listEvents()).length;
    const answer = await ask(name, more);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ status: 'error', statusCode: status });
    expect(await world.listEvents()).toHaveLength(facts);
  });

  test.each<[object, number]>([
    [{}, 200],
    [{ temperature: 1, usage: { include: true }, max_completion_tokens: 9, seed: null }, 200],
    [{ top_k: 1 }, 404],
  ])('with %j and require_parameters needs an endpoint that supports all set parameters', async (more, status) => {
    const answer = await ask('test/two', { ...more, provider: { require_parameters: true } });
    expect(answer.status).toBe(status);
    if (status === 404)
      expect(answer.body.message).toMatch(/dear does not support top_k; cheap does not support top_k$/);
  });

  test('uses the cheapest endpoint even if it does not support a parameter, unless fallbacks are allowed', async () => {
    expect((await ask('test/few')).body.provider).toBe('Few');
    expect((await ask('test/few', { temperature: 1 })).body.provider).toBe('Few');
    expect((await ask('test/few', { temperature: 1, ...ANY })).body.provider).toBe('Many');
  });

  test('selects a variant by its suffix', async () => {
    expect((await ask('test/falls-back:thinking')).body.model).toBe('test/two');
  });

  test.each(sampleCases([false, true], 1, 1))(
    'is forwarded with its unknown suffix, and is rejected if the provider rejects the suffix (stream: %s)',
    async (stream) => {
      const balance = await world.fetchBalance(account);
      const answer = await ask('test/two:beta', { stream }); // the provider has no gpt-4o-mini:beta
      expect(answer.status).toBe(404);
      expect(answer.body.error).toMatchObject({ message: 'No endpoints found for test/two:beta', param: 'model' });
      expect(await world.fetchBalance(account)).toBe(balance);
      const released = (await world.listEvents()).filter(({ type }) => type === 'HoldReleased').at(-1);
      expect(released).toMatchObject({ data: { attempts: [{ provider: 'cheap' }] } });
    },
  );

  test('with an unknown suffix does not count as a failure of the endpoint', async () => {
    await ask('test/two:beta');
    await ask('test/two', { provider: { sort: 'price' } });
    expect(await lastCharge()).toMatchObject({ items: [{ provider: 'cheap' }], attempts: [{ outcome: 'ok' }] });
  });
});

describe('a catalogue that is edited while the gateway runs', () => {
  const file = () => path.join(String(world.foundation.settings.catalogueDir), TEST_MODELS);
  const write = async (content: string) => {
    await writeFile(file(), content);
    const later = new Date(Date.now() + 5_000);
    await utimes(file(), later, later); // a clear difference, because the clock of the file system may be coarse
  };

  test('takes effect soon, and its price list is published', async () => {
    const changed = [...MODELS, createTestModel('test/new', [offer('Cheap', 'openai', '0.33')])];
    await write(JSON.stringify(changed));
    await world.waitUntil(async () => (await world.get('/v1/models/test/new')).status === 200);
    await ask('test/new');
    const { priceList } = (await lastCharge()) ?? {};
    const lists = (await world.listEvents()).filter(({ type }) => type === 'PriceListPublished');
    expect(lists.map(({ data }) => (data as { version: string }).version)).toContain(priceList);
  });

  test('is not applied if a file is invalid, and is applied once the file is valid', async () => {
    const before = await readFile(file(), 'utf8');
    await write('[{]');
    expect((await world.get('/v1/models/test/new')).status).toBe(200);
    await write(before.replaceAll('0.33', '0.34'));
    await world.waitUntil(async () => (await world.get('/v1/models/test/new')).body.pricing.prompt === '0.0000003587');
  });
});
