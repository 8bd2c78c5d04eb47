import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sampleCases, TestWorld } from '#testing';

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());

interface Row {
  readonly id: string;
  readonly type: string;
  readonly created: number;
  readonly popular: boolean;
  readonly privacyLevel: string;
  readonly pricing: Readonly<Record<string, unknown>>;
  readonly links: { readonly details: string };
  readonly expiration_date: string | null;
  readonly successor: string | null;
}
const rows = async (query = ''): Promise<Row[]> => (await world.get(`/v1/models${query}`)).body.data;
const pricing = async (model: string) => (await rows()).find(({ id }) => id === model)?.pricing ?? {};

describe('the list of models', () => {
  test('is public, and the same at both paths', async () => {
    const [versioned, plain] = await Promise.all([world.get('/v1/models'), world.get('/models')]);
    expect(versioned.status).toBe(200);
    expect(plain.body).toEqual(versioned.body);
    const total_count = versioned.body.data.length;
    expect(versioned.body).toMatchObject({ object: 'list', total_count, links: { next: null } });
    expect(total_count).toBeGreaterThan(0);
  });

  test('has every field in every row, with its type', async () => {
    for (const each of await rows()) {
      expect(each).toEqual({
        id: expect.any(String),
        object: 'model',
        created: expect.any(Number),
        created_at: each.created * 1000,
        owned_by: expect.any(String),
        provider: expect.any(String),
        name: expect.any(String),
        type: 'chat',
        description: expect.any(String),
        canonical_slug: expect.any(String),
        context_length: expect.any(Number),
        popular: expect.any(Boolean),
        privacyLevel: expect.stringMatching(/^(anon|zdr|e2e)$/),
        architecture: {
          modality: expect.stringMatching(/->text$/),
          input_modalities: expect.arrayContaining(['text']),
          output_modalities: ['text'],
          tokenizer: expect.any(String),
          instruct_type: null,
        },
        pricing: expect.any(Object),
        supported_parameters: expect.arrayContaining(['max_tokens']),
        top_provider: {
          context_length: expect.any(Number),
          max_completion_tokens: expect.any(Number),
          is_moderated: false,
        },
        per_request_limits: null,
        default_parameters: null,
        supported_voices: null,
        median_cost: null,
        prompts_per_usd: null,
        expiration_date: each.expiration_date === null ? null : expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        successor: each.successor === null ? null : expect.any(String),
        links: { details: expect.stringMatching(/^\/v1\/models\//) },
      });
      expect(Number.isInteger(each.created)).toBe(true);
    }
  });

  test('has prices with the margin: numbers per million tokens, strings per token', async () => {
    expect(await pricing('openai/gpt-5-mini')).toEqual({
      input_per_1M_tokens: 0.26375,
      output_per_1M_tokens: 2.11,
      cache_read_per_1M_tokens: 0.026375,
      api: { input_per_1M: 0.26375, output_per_1M: 2.11 },
      ui: { input_per_1M: 0.26375, output_per_1M: 2.11 },
      prompt: '0.00000026375',
      completion: '0.00000211',
      input_cache_read: '0.000000026375',
      input_cache_write: '0.00000026375',
      internal_reasoning: '0.00000211',
      request: '0',
    });
    expect(await pricing('anthropic/claude-haiku-4.5')).toMatchObject({
      prompt: '0.000001055',
      input_cache_write: '0.00000131875',
      input_cache_write_1h: '0.00000211',
    });
    expect(await pricing('countinghouse/flat')).toMatchObject({ prompt: '0', completion: '0', request: '0.01' });
  });

  test('has prices of images, videos and audio by their units, with the margin', async () => {
    const row = async (id: string) => (await world.get(`/v1/models/${id}`)).body;
    expect(await row('google/nano-banana-2')).toMatchObject({
      pricing: {
        unit: 'image',
        base_price: 0.092,
        variants: [
          { resolution: '2K', price: 0.138 },
          { resolution: '4K', price: 0.184 },
        ],
        api: { base_price: 0.092 },
        prompt: '0',
        completion: '0',
        image: '0.092',
      },
      capabilities: {
        text_to_image: true,
        edit: true,
        upscale: false,
        background_removal: false,
        requires_image: false,
        max_images: 4,
        choices: { resolution: ['1K', '2K', '4K'] },
      },
    });
    expect(await row('veo3')).toMatchObject({
      id: 'google/veo-3',
      pricing: { unit: 'second', base_price: 0.46 },
      capabilities: { text_to_video: true, image_to_video: false, choices: { duration: ['8', '6', '4'] } },
    });
    expect((await row('nova-3')).pricing).toMatchObject({ unit: 'minute', base_price: 0.0045365 });
    expect(await row('eleven_v3')).toMatchObject({
      pricing: { unit: '1k_characters', base_price: 0.1055 },
      capabilities: { text_to_speech: true, speech_to_text: false, max_characters: 5000 },
    });
  });

  test('has no number with an exponent', async () => {
    expect((await world.get('/v1/models?type=all')).text).not.toMatch(/[:,[]-?\d+(\.\d+)?e/i);
  });

  test('has only models that can be used, each of them once', async () => {
    const ids = (await rows()).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const account = await world.createAccount(1.05);
    for (const model of sampleCases(ids, 20))
      expect((await world.sendChat(account, 'tokens=1', { model })).body.model).toBe(model);
  });

  test('has the token prices at which a chat is charged', async () => {
    const account = await world.createAccount(1.05);
    const { usage } = (await world.sendChat(account, 'tokens=8')).body;
    const { prompt, completion } = await pricing('openai/gpt-5-mini');
    const price = usage.prompt_tokens * Number(prompt) + usage.completion_tokens * Number(completion);
    expect(usage.cost).toBeCloseTo(price, 12);
  });

  test.each(['', '?type=chat', '?type=', '?limit=1&unknown=1'])(
    'has only chat models for the query "%s"',
    async (query) => {
      const found = await rows(query);
      expect(new Set(found.map(({ type }) => type))).toEqual(new Set(['chat']));
      expect(found).toEqual(await rows());
    },
  );

  test.each([
    ['image', ['image']],
    ['video', ['video']],
    ['image,video', ['image', 'video']],
    ['chat,image', ['chat', 'image']],
    ['embedding', ['embedding']],
    ['audio', ['audio']],
    ['all', ['chat', 'embedding', 'image', 'video', 'audio']],
  ])('has for "?type=%s" the models of the types %j, and private ones only for all', async (type, types) => {
    const found = await rows(`?type=${type}`);
    expect(new Set(found.map((row) => row.type))).toEqual(new Set(types));
    const all = (await rows('?type=all')).filter((row) => types.includes(row.type));
    expect(found).toEqual(type === 'all' ? all : all.filter(({ privacyLevel }) => privacyLevel !== 'e2e'));
  });

  test.each(['pictures', 'image,text', 'Chat', ','])(
    'is not returned for an unknown type, and the error lists the types: %s',
    async (type) => {
      const { status, body } = await world.get(`/v1/models?type=${type}`);
      expect(status).toBe(400);
      expect(body.message).toBe('type must be a comma-separated list of chat, embedding, image, video, audio, all');
      expect(body.error).toMatchObject({ type: 'invalid_request_error', param: 'type' });
    },
  );

  test('has private models only for type all, because no chat route serves them', async () => {
    const e2e = (await rows('?type=all')).filter(({ privacyLevel }) => privacyLevel === 'e2e');
    expect(e2e.length).toBeGreaterThanOrEqual(3);
    for (const row of e2e) {
      expect(row).toMatchObject({ id: expect.stringMatching(/^private\//), type: 'chat' });
      expect((await world.get(row.links.details)).body).toEqual(row);
    }
    expect(e2e.find(({ id }) => id === 'private/gpt-oss-120b')?.pricing).toMatchObject({
      input_per_1M_tokens: 0.79125,
      output_per_1M_tokens: 1.31875,
    });
    const { data } = (await world.get('/v1/models/private/gpt-oss-120b/endpoints')).body;
    expect(data.endpoints).toMatchObject([{ tag: 'tinfoil', default: true, pricing: { prompt: '0.00000079125' } }]);
    const readable = await rows('?type=chat,embedding,image,video,audio');
    expect(readable).toEqual(
      (await rows('?type=all')).filter((row) => !e2e.includes(row) && !row.id.startsWith('private/')),
    );
  });

  test('has only popular models if they are requested', async () => {
    const filtered = await rows('?popular=true');
    expect(filtered).toEqual((await rows()).filter(({ popular }) => popular));
    expect(filtered).not.toHaveLength((await rows()).length);
    const media = await rows('?type=image,video&popular=true');
    expect(media).toEqual((await rows('?type=image,video')).filter(({ popular }) => popular));
    expect(new Set(media.map(({ type }) => type))).toEqual(new Set(['image', 'video']));
  });
});

describe('one model', () => {
  test('is found by the link of its row, and by its id with an encoded slash', async () => {
    for (const each of sampleCases(await rows(), 20)) {
      expect((await world.get(each.links.details)).body).toEqual(each);
      expect((await world.get(`/models/${encodeURIComponent(each.id)}`)).body).toEqual(each);
    }
  });

  test('is not found if it does not exist', async () => {
    const { status, body } = await world.get('/v1/models/openai/nope');
    expect(status).toBe(404);
    expect(body.error).toMatchObject({ code: 'model_not_found', type: 'invalid_request_error', param: 'model' });
  });
});

describe('the endpoints of a model', () => {
  const endpoints = async (id: string) => (await world.get(`/v1/models/${id}/endpoints`)).body.data.endpoints;

  test('are listed with their privacy and limits, and whether they serve by default', async () => {
    const { status, body } = await world.get('/v1/models/deepseek/deepseek-r1/endpoints');
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ id: 'deepseek/deepseek-r1', architecture: { input_modalities: ['text'] } });
    expect(body.data.endpoints).toMatchObject([
      {
        name: 'DeepInfra | deepseek/deepseek-r1',
        provider_name: 'DeepInfra',
        tag: 'deepinfra',
        privacy: { zdr: true, collects_data: false },
        quantization: 'fp4',
        context_length: expect.any(Number),
        max_completion_tokens: expect.any(Number),
        supported_parameters: expect.arrayContaining(['n']),
      },
      { tag: 'deepseek', privacy: { zdr: false, collects_data: true }, default: expect.any(Boolean) },
    ]);
  });

  test('are found by an alias, with an encoded slash, and at both paths, but not for an unknown model', async () => {
    const { body } = await world.get('/v1/models/openai/gpt-5/endpoints');
    for (const path of ['/models/openai/gpt-5', '/v1/models/openai%2Fgpt-5', '/models/gpt-5', '/v1/models/gpt-5'])
      expect((await world.get(`${path}/endpoints`)).body).toEqual(body);
    for (const path of ['/v1/models/openai/nope', '/v1/models/nope'])
      expect(await world.get(`${path}/endpoints`)).toMatchObject({
        status: 404,
        body: { error: { param: 'model', code: 'model_not_found' } },
      });
  });

  test('have the listed price of the model as their maximum if they serve by default', async () => {
    const chats = (await rows('?type=all')).filter(({ type }) => type === 'chat');
    for (const { id, pricing } of sampleCases(chats, 20)) {
      const all: { default: boolean; pricing: Record<string, string> }[] = await endpoints(id);
      const served = all.filter((each) => each.default);
      expect(served.length).toBeGreaterThan(0);
      for (const unit of ['prompt', 'completion', 'request', 'input_cache_read', 'input_cache_write']) {
        const most = Math.max(...served.map((each) => Number(each.pricing[unit])));
        expect(Number(pricing[unit])).toBe(most);
      }
    }
  });

  test('exist for models of every type', async () => {
    const ofTypes = Object.values(Object.groupBy(await rows('?type=all'), ({ type }) => type));
    for (const { id } of ofTypes.flatMap((models = []) => sampleCases(models, 5))) {
      const all = await endpoints(id);
      expect(all.length).toBeGreaterThan(0);
      for (const each of all) expect(each).toMatchObject({ model_id: id, pricing: { prompt: expect.any(String) } });
    }
  });
});

test('returns the median cost of the queries of a model, and how many of them 1 USD pays for', async () => {
  const model = 'openai/text-embedding-3-large'; // which no other test uses
  const account = await world.createAccount(10);
  for (const length of [1_000, 2_000, 5_000])
    await world.post('/v1/embeddings', { model, input: Array(length).fill(1) }, account);
  const history = async (): Promise<{ price_in_usd: number }[]> =>
    (await world.get('/queries/history', account)).body.data;
  await world.waitUntil(async () => (await history()).length === 3);
  const [, middle = 0] = (await history()).map(({ price_in_usd }) => price_in_usd).toSorted((a, b) => a - b);
  const api = await world.addGateway(); // a gateway that has not read the medians yet
  const { median_cost, prompts_per_usd } = (await world.send('GET', `/v1/models/${model}`, { api })).body;
  expect(median_cost).toEqual({ api: { usd: middle }, sample_size: 3 });
  expect(prompts_per_usd).toBe(Math.floor(1 / middle));
});
