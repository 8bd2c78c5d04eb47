/** Models are sold until the day before their end. Then requests name the model to use instead, and nothing is lost. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { HTTPClient, OpenRouter } from '@openrouter/sdk';
import { CatalogueService } from '#application';
import { verify } from '#audit';
import { type AnyModel, getProviderCapability, getShippedCatalogueDir, isMediaModel, isPrivate } from '#catalogue';
import {
  createForm,
  createTestEndpoint,
  createTestModel,
  listCharges,
  PIXEL,
  type TestAccount,
  type TestResponse,
  TestWorld,
} from '#testing';

/** Ends between the day of the world and the day of the later gateway. */
const RETIRES = '2026-12-11';
const BEFORE = '2026-12-10';
const AFTER = '2027-02-01';

type Entry = { readonly id: string } & Readonly<Record<string, unknown>>;

function readEntry(file: string, id: string): Entry {
  const entries: readonly Entry[] = JSON.parse(readFileSync(path.join(getShippedCatalogueDir(), file), 'utf8'));
  const { aliases, retires, successor, ...entry } = entries.find((one) => one.id === id) as Entry;
  return entry;
}

/** Returns a copy of a shipped model that retires in favour of the shipped one. */
function buildPredecessor(file: string, successor: string, fields: object = {}) {
  return { ...readEntry(file, successor), id: `${successor}-old`, retires: RETIRES, successor, ...fields };
}

const endpoints = [createTestEndpoint('OpenAI', 'openai')];
const CHAT = createTestModel('test/chat', endpoints);
const OLD_PRIVATE = readEntry('private-models.json', 'private/gpt-oss-120b') as Entry & { endpoints: object[] };
const MODELS = [
  CHAT,
  createTestModel('test/middle', endpoints, { retires: '2027-01-14', successor: 'test/chat' }),
  createTestModel('test/old', endpoints, {
    aliases: ['old-chat'],
    retires: RETIRES,
    successor: 'test/middle',
    variants: { thinking: 'test/chat' },
  }),
  createTestModel('test/last', endpoints, { retires: RETIRES }),
  createTestModel('test/shared', [
    createTestEndpoint('OpenAI', 'openai', { retires: RETIRES }),
    createTestEndpoint('Groq', 'groq', { model: 'openai/gpt-oss-120b' }),
  ]),
  buildPredecessor('embeddings.json', 'openai/text-embedding-3-small'),
  buildPredecessor('images.json', 'black-forest-labs/flux-1-schnell'),
  buildPredecessor('images.json', 'black-forest-labs/flux-kontext-pro'),
  buildPredecessor('videos.json', 'kling/kling-2.5-turbo'),
  buildPredecessor('audio.json', 'nova-3'),
  buildPredecessor('audio.json', 'openai/tts-1'),
  buildPredecessor('private-models.json', OLD_PRIVATE.id, {
    endpoints: [{ ...OLD_PRIVATE.endpoints[0], enclave: '/gpt-oss-120b-old' }],
  }),
];

let world: TestWorld;
let account: TestAccount;
/** The address of a gateway on the same stores, on whose day the models above have retired. */
let later: string;
beforeAll(async () => {
  world = await TestWorld.open({ CATALOGUE_DAY: BEFORE }, MODELS);
  account = await world.createAccount(200);
  later = await world.addGateway({ catalogueDay: AFTER });
});
afterAll(() => world.close());

const messages = [{ role: 'user', content: 'Hello' }];
const chat = (model: string, fields: object = {}) => ({ model, messages, ...fields });

/** Sends a request that the model serves, unless it has retired. */
function requestModel(model: AnyModel, api: string): Promise<TestResponse> {
  const { id } = model;
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const post = (route: string, body: unknown) => world.send('POST', route, { headers, body, api });
  if (isPrivate(model)) return world.send('GET', `/private/attestation?model=${id}`, { headers, api });
  if (!isMediaModel(model))
    return model.type === 'chat'
      ? post('/v1/chat/completions', chat(id))
      : post('/v1/embeddings', { model: id, input: 'Hello' });
  const prompt = 'A counting house';
  switch (getProviderCapability(model)) {
    case 'speech':
      return post('/v1/audio/speech', { model: id, input: 'Hello' });
    case 'transcription':
      return post('/v1/audio/transcriptions', createForm({ model: id, file: '@file' }));
    case 'videos':
      return post('/v1/videos', { model: id, prompt, ...(id.endsWith('-i2v') ? { image_url: IMAGE_URL } : {}) });
    default:
      return model.capabilities.includes('text_to_image')
        ? post('/v1/images/generations', { model: id, prompt })
        : post('/v1/images/edits', createForm({ model: id, prompt, image: '@image' }));
  }
}
const IMAGE_URL = `data:image/png;base64,${PIXEL.toString('base64')}`;

const isSuccess = ({ status }: TestResponse) => status === 200 || status === 202;

describe('each retired model of the catalogue', () => {
  const listRetired = () => {
    const { current } = world.getService(CatalogueService);
    const catalogue = current.onDay(AFTER);
    return catalogue.retiredModels.map((model) => ({ model, retirement: catalogue.findRetirement(model), catalogue }));
  };

  test('is served until the day before, with the day and the successor in the headers', async () => {
    for (const { model } of listRetired().filter(({ model }) => model.id.startsWith('test/'))) {
      const response = await requestModel(model, world.api);
      const sunset = model.retires === RETIRES ? 'Fri, 11 Dec 2026 00:00:00 GMT' : null;
      expect([model.id, response.status, response.headers.get('sunset')]).toEqual([model.id, 200, sunset]);
    }
    const old = await world.post('/v1/chat/completions', chat('test/old'), account);
    expect(old.headers.get('link')).toBe('</v1/models/test/middle>; rel="successor-version"');
  });

  test('is 410 with its first living successor, which is served, and nothing is held', async () => {
    const retired = listRetired();
    const successors = new Set<string>();
    const events = (await world.listEvents()).length;
    for (const { model, retirement } of retired) {
      const { status, body, headers } = await requestModel(model, later);
      const advice = retirement?.successor ? `; use "${retirement.successor}"` : '';
      expect([model.id, status, body.error]).toEqual([
        model.id,
        410,
        expect.objectContaining({
          type: 'invalid_request_error',
          code: 'model_retired',
          param: 'model',
          message: `The model "${model.id}" was retired on ${model.retires}${advice}`,
        }),
      ]);
      expect([headers.get('retry-after'), headers.get('sunset')]).toEqual([null, null]);
      if (retirement?.successor) successors.add(retirement.successor);
    }
    expect(await world.listEvents()).toHaveLength(events);
    expect(retired.length).toBeGreaterThanOrEqual(10);
    for (const id of successors) {
      const successor = retired[0]?.catalogue.findModel(id) as AnyModel;
      expect([id, isSuccess(await requestModel(successor, later))]).toEqual([id, true]);
    }
  });

  test('is in no list, unless the list includes retired models', async () => {
    const ids = listRetired().map(({ model }) => model.id);
    const list = async (query: string) =>
      (await world.send('GET', `/v1/models?type=all${query}`, { api: later })).body.data as readonly {
        readonly id: string;
        readonly expiration_date: string | null;
        readonly successor: string | null;
      }[];

    const living = await list('');
    expect(living.filter(({ id }) => ids.includes(id))).toEqual([]);
    expect((await list('&include_retired=false')).map(({ id }) => id)).toEqual(living.map(({ id }) => id));
    const all = await list('&include_retired=true');
    expect(
      all
        .slice(living.length)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(ids.toSorted());
    expect(all.find(({ id }) => id === 'test/old')).toMatchObject({ expiration_date: RETIRES, successor: 'test/chat' });
    expect((await world.send('GET', '/v1/models?include_retired=yes', { api: later })).status).toBe(400);
    const audio = (await world.send('GET', '/v1/audio/models', { api: later })).body.data;
    expect(audio.filter(({ id }: { id: string }) => ids.includes(id))).toEqual([]);
  });
});

const PROTOCOLS: Readonly<Record<string, (model: string) => readonly [route: string, body: object]>> = {
  'a chat': (model) => ['/v1/chat/completions', chat(model)],
  'a streamed chat': (model) => ['/v1/chat/completions', chat(model, { stream: true })],
  'a completion': (model) => ['/v1/completions', { model, prompt: 'Hello' }],
  'a response': (model) => ['/v1/responses', { model, input: 'Hello' }],
  'a streamed response': (model) => ['/v1/responses', { model, input: 'Hello', stream: true }],
};

describe('a request for a retired model', () => {
  test.each(Object.entries(PROTOCOLS))('as %s is 410 by id, alias and with suffixes', async (_, create) => {
    for (const name of ['test/old', 'old-chat', 'test/old:online', 'old-chat:nitro', 'test/old:free', 'old-chat:x:y']) {
      const [route, body] = create(name);
      const { status, body: answer } = await world.post(route, body, account, later);
      expect([name, status, answer.error?.code]).toEqual([name, 410, 'model_retired']);
    }
  });

  test('with a suffix that selects a living variant is served by the variant', async () => {
    const { status, body } = await world.post('/v1/chat/completions', chat('test/old:thinking'), account, later);
    expect([status, body.model]).toEqual([200, 'test/chat']);
  });

  test.each(['/v1/messages', '/v1/messages/count_tokens'])(
    'to %s has an error in the format of Anthropic',
    async (route) => {
      const limit = route.endsWith('tokens') ? {} : { max_tokens: 20 };
      const { status, body } = await world.post(route, chat('old-chat', limit), account, later);

      const message = `The model "test/old" was retired on ${RETIRES}; use "test/chat"`;
      const details = { error_code: 'model_retired', param: 'model' };
      expect([status, body]).toMatchObject([
        410,
        { type: 'error', error: { type: 'not_found_error', message, details } },
      ]);
    },
  );

  test.each([
    '/v1/models/test/old',
    '/v1/models/old-chat',
    '/v1/models/test/old/endpoints',
    '/v1/models/old-chat/endpoints',
  ])('to GET %s is 410', async (route) => {
    const { status, body } = await world.send('GET', route, { api: later });
    expect([status, body.error.code]).toEqual([410, 'model_retired']);
  });

  test('to a private model is 410 before its body is read', async () => {
    const headers = {
      authorization: `Bearer ${account.apiKey}`,
      'content-type': 'application/octet-stream',
      'x-private-model': `${OLD_PRIVATE.id}-old`,
      'ehbp-encapsulated-key': '0'.repeat(64),
    };
    const body = new Uint8Array(8);
    const { status, text } = await world.send('POST', '/private/v1/chat/completions', { headers, body, api: later });
    expect([status, JSON.parse(text).error.code]).toEqual([410, 'model_retired']);
  });

  test('whose Idempotency-Key has a saved response gets this response', async () => {
    const [route, body] = ['/v1/chat/completions', chat('test/old')];
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': 'before the end' };
    const first = await world.send('POST', route, { headers, body });
    const again = await world.send('POST', route, { headers, body, api: later });
    expect([first.status, again.status, again.text]).toEqual([200, 200, first.text]);
  });

  test('without an account gets no challenge', async () => {
    const body = { model: 'black-forest-labs/flux-1-schnell-old', prompt: 'A coin' };
    const { status, headers } = await world.send('POST', '/v1/images/generations', { body, api: later });
    expect([status, headers.has('www-authenticate')]).toEqual([410, false]);
  });
});

test('a payment for a model that has retired since stays owed to its payer, who learns that', async () => {
  const [route, body] = ['/v1/images/generations', { model: 'black-forest-labs/flux-1-schnell-old', prompt: 'A coin' }];
  const challenge = await world.send('POST', route, { body });
  expect([challenge.status, challenge.headers.get('sunset')]).toEqual([402, 'Fri, 11 Dec 2026 00:00:00 GMT']);
  const { preimage } = (await world.payInvoice(challenge.body.invoice)).body;
  const headers = { authorization: `L402 ${challenge.body.challengeId}:${preimage}` };

  const refused = await world.send('POST', route, { body, headers, api: later });

  expect([refused.status, refused.headers.has('www-authenticate'), refused.body.message]).toEqual([
    410,
    false,
    `The model "${body.model}" was retired on ${RETIRES}; use "black-forest-labs/flux-1-schnell"; the payment was not used and is owed to you: save its proof and contact the operator`,
  ]);
  const { data } = (await world.send('GET', '/v1/payments/charge', { headers, api: later })).body;
  expect(data).toMatchObject({ state: 'paid', charged_usd: 0, left_usd: data.price_usd });
});

describe('before the end of a model', () => {
  test.each([
    ['a message', '/v1/messages', chat('test/old', { max_tokens: 20 })],
    ['a streamed message', '/v1/messages', chat('test/old', { max_tokens: 20, stream: true })],
    ...Object.entries(PROTOCOLS).map(([name, create]) => [name, ...create('test/old')] as const),
  ])('%s has a Sunset and a Link header', async (_, route, body) => {
    const { status, headers } = await world.post(route, body, account);
    expect([status, headers.get('sunset'), headers.get('link')]).toEqual([
      200,
      'Fri, 11 Dec 2026 00:00:00 GMT',
      '</v1/models/test/middle>; rel="successor-version"',
    ]);
  });

  test('a response of a model without an end has neither header', async () => {
    const { headers } = await world.post('/v1/chat/completions', chat('test/chat'), account);
    expect([headers.get('sunset'), headers.get('link')]).toEqual([null, null]);
  });

  test("its list entry has the day and the successor, in the fields of OpenRouter's clients", async () => {
    const client = new OpenRouter({
      apiKey: account.apiKey,
      serverURL: `${world.api}/v1`,
      httpClient: new HTTPClient(),
    });
    const read = [];
    for await (const { result } of await client.models.list()) read.push(...result.data);
    const days = new Map(read.map(({ id, expirationDate }) => [id, expirationDate]));
    expect([days.get('test/old'), days.get('test/middle'), days.get('test/chat')]).toEqual([RETIRES, null, null]);
    expect((await world.get('/v1/models/test/old')).body).toMatchObject({
      expiration_date: RETIRES,
      successor: 'test/middle',
    });
  });

  test('an endpoint that ends alone is marked among the endpoints, and then leaves them', async () => {
    const list = async (api: string) => {
      const { data } = (await world.send('GET', '/v1/models/test/shared/endpoints', { api })).body;
      return data.endpoints.map(({ tag, expiration_date }: Record<string, unknown>) => [tag, expiration_date]);
    };
    expect(await list(world.api)).toEqual([
      ['openai', RETIRES],
      ['groq', null],
    ]);
    expect(await list(later)).toEqual([['groq', null]]);
    const only = chat('test/shared', { provider: { only: ['openai'] } });
    const { status, body } = await world.post('/v1/chat/completions', only, account, later);
    expect([status, body.message]).toEqual([404, expect.stringContaining(`openai was retired on ${RETIRES}`)]);
  });
});

describe('after the end of a model', () => {
  test('a key that permits it can be created and changed', async () => {
    const headers = { 'x-credit-id': account.creditId };
    const models = ['old-chat', 'test/last:online', 'test/chat'];
    const created = await world.send('POST', '/keys', { headers, body: { name: 'old', models }, api: later });
    expect([created.status, created.body.data?.models]).toEqual([201, ['test/old', 'test/last', 'test/chat']]);
  });

  test('the history finds its queries by its alias', async () => {
    await world.post('/v1/chat/completions', chat('test/old'), account);
    const headers = { 'x-credit-id': account.creditId };
    const { body } = await world.send('GET', '/queries/history?model=old-chat', { headers, api: later });
    expect(body.data[0]).toMatchObject({ model: 'test/old' });
  });

  test('its charges replay at their price list, without a drift', async () => {
    const charged = listCharges(await world.listEvents(account));
    expect(charged.length).toBeGreaterThan(10);
    const lines: string[] = [];
    await verify(world.foundation, (line) => lines.push(line));
    expect(lines.at(-1)).toBe('drift 0');
  });
});
