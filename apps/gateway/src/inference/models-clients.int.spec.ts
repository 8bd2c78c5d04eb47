import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { HTTPClient, OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { readCatalogue } from '#catalogue';
import type { PriceListPublished } from '#domain';
import { sampleCases, type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(1);
});
afterAll(() => world.close());

const models = readCatalogue().models;
const ids = models.map(({ id }) => id);

/** Adds the query parameter `type`, which the clients cannot set. */
const everyType: typeof fetch = (input, init) => {
  const request = new Request(input, init);
  const url = new URL(request.url);
  url.searchParams.set('type', 'all');
  return fetch(new Request(url, request));
};

test('reads models of every type from the catalogue', () => {
  const count = (type: string) => models.filter((model) => model.type === type).length;
  expect(
    Object.fromEntries(['chat', 'embedding', 'image', 'video', 'audio'].map((type) => [type, count(type)])),
  ).toEqual({
    chat: expect.any(Number),
    embedding: 4,
    image: 15,
    video: 10,
    audio: 9,
  });
  expect(count('chat')).toBeGreaterThan(40);
});

describe('the list of models of all types', () => {
  test("is read by OpenAI's client", async () => {
    const client = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, fetch: everyType });
    const listed = await client.models.list();
    expect(listed.data.map(({ id }) => id)).toEqual(ids);
    for (const { id, object, created, owned_by } of listed.data)
      expect({ id, object, created, owned_by }).toEqual({
        id,
        object: 'model',
        created: expect.any(Number),
        owned_by: expect.any(String),
      });
  });

  test("is read by OpenRouter's client, which validates every field", async () => {
    const httpClient = new HTTPClient({ fetcher: everyType });
    const client = new OpenRouter({ apiKey: account.apiKey, serverURL: `${world.api}/v1`, httpClient });
    const read = [];
    for await (const { result } of await client.models.list()) read.push(...result.data);
    expect(read.map(({ id }) => id)).toEqual(ids);
    for (const { pricing, links } of read) {
      expect([pricing.prompt, pricing.completion]).toEqual([expect.any(String), expect.any(String)]);
      expect(links.details).toMatch(/^\/v1\/models\//);
    }
  });
});

test("lists the endpoints of a model for OpenRouter's client", async () => {
  const client = new OpenRouter({ apiKey: account.apiKey, serverURL: `${world.api}/v1` });
  const { data } = await client.endpoints.list({ author: 'deepseek', slug: 'deepseek-r1' });
  expect(data.endpoints.map(({ tag }) => tag)).toEqual(['deepinfra', 'deepseek']);
  // The client for Python requires these fields.
  const { body } = await world.get('/v1/models/deepseek/deepseek-r1/endpoints');
  expect(body.data.endpoints[0]).toMatchObject({ native_tools: {}, service_tier: null, supports_diarization: false });
});

test('returns the same fields for models of every type, except capabilities', async () => {
  const { data } = (await world.get('/v1/models?type=all')).body;
  const fields = (row: object) => Object.keys(row).filter((name) => name !== 'capabilities');
  for (const row of data) {
    expect(fields(row)).toEqual(fields(data[0]));
    expect({ ...row, pricing: Object.values(row.pricing.api) }).toMatchObject({
      popular: expect.any(Boolean),
      median_cost: null,
      prompts_per_usd: null,
      context_length: expect.any(Number),
      supported_parameters: expect.arrayContaining([expect.any(String)]),
      default_parameters: null,
      per_request_limits: null,
      supported_voices: row.architecture.output_modalities.includes('speech')
        ? expect.arrayContaining([expect.any(String)])
        : null,
      top_provider: { is_moderated: false },
      pricing: expect.arrayContaining([expect.any(Number)]),
    });
    expect('capabilities' in row).toBe(['image', 'video', 'audio'].includes(row.type));
  }
});

describe('a model that is not priced by tokens', () => {
  const media = models.filter(({ type }) => type !== 'chat' && type !== 'embedding');

  test('is in the published price list, with prices in pico-USD as decimal text', async () => {
    const list = (await world.listEvents()).find(({ type }) => type === 'PriceListPublished') as PriceListPublished;
    const ids = media.map(({ id }) => id);
    const lines = list.data.lines.filter(({ of }) => ids.includes(of));
    expect([...new Set(lines.map(({ of }) => of))]).toEqual(ids);
    expect(lines.find(({ of }) => of === 'openai/sora-2-pro')).toEqual({
      of: 'openai/sora-2-pro',
      provider: 'fal',
      creditor: 'fal',
      prices: [
        { unit: 'videoSecond', per: 1, cost: '500000000000', price: '575000000000', when: { quality: '1080p' } },
        { unit: 'videoSecond', per: 1, cost: '300000000000', price: '345000000000' },
      ],
    });
  });

  test.each(sampleCases(media, 6).map(({ id, type }) => [id, type]))(
    'is rejected by chats and embeddings: %s',
    async (model, type) => {
      const facts = (await world.listEvents()).length;
      const chat = await world.sendChat(account, 'tokens=1', { model });
      expect(chat.status).toBe(400);
      expect(chat.body.message).toBe(`The model "${model}" is not a chat model; its type is ${type}`);
      const embeddings = await world.post('/v1/embeddings', { model, input: 'a' }, account);
      expect(embeddings.status).toBe(400);
      expect(embeddings.body.message).toBe(`The model "${model}" is not an embedding model; its type is ${type}`);
      expect(await world.listEvents()).toHaveLength(facts);
    },
  );
});
