/** The lists of models, and unknown paths, as Anthropic's unmodified client reads them. */
import Anthropic, { NotFoundError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';
import { createAnthropicModelPage } from './anthropic-models.ts';
import type { ModelJson } from './models-wire.ts';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

let world: TestWorld;
let account: TestAccount;
let client: Anthropic;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(1);
  client = new Anthropic({ apiKey: account.apiKey, baseURL: world.api, maxRetries: 0 });
});
afterAll(() => world.close());

const headers = { 'anthropic-version': '2023-06-01' };
const listAllIds = async (): Promise<string[]> =>
  (await world.get('/v1/models')).body.data.map(({ id }: { id: string }) => id);

describe('the list of models', () => {
  test("has Anthropic's fields", async () => {
    const { data, has_more, first_id, last_id } = await client.models.list();
    for (const each of data)
      expect(each).toEqual({
        type: 'model',
        id: expect.any(String),
        display_name: expect.any(String),
        created_at: expect.stringMatching(TIME),
        max_input_tokens: expect.any(Number),
        max_tokens: expect.any(Number),
        lifecycle: expect.stringMatching(/^(active|deprecated)$/),
        retires_at: each.lifecycle === 'active' ? null : expect.stringMatching(TIME),
        deprecated_at: null,
        capabilities: null,
        line: null,
      });
    expect([data.length, has_more]).toEqual([20, true]);
    expect([first_id, last_id]).toEqual([data[0]?.id, data.at(-1)?.id]);
    const dates = data.map(({ created_at }) => created_at);
    expect(dates).toEqual(dates.toSorted().reverse());
  });

  test.each([7, 1_000])('has every model once, in pages of %d', async (limit) => {
    const read: string[] = [];
    for await (const { id } of client.models.list({ limit })) read.push(id);
    expect(read.toSorted()).toEqual((await listAllIds()).toSorted());
  });

  test('is read backwards with before_id', async () => {
    const { data } = await client.models.list({ limit: 10 });
    const ids = data.map(({ id }) => id);
    const near = await client.models.list({ limit: 4, before_id: ids[6] as string });
    expect([near.data.map(({ id }) => id), near.has_more]).toEqual([ids.slice(2, 6), true]);
    const first = await client.models.list({ limit: 4, before_id: ids[2] as string });
    expect([first.data.map(({ id }) => id), first.has_more]).toEqual([ids.slice(0, 2), false]);
  });

  test.each([
    ['limit', 'limit=0'],
    ['limit', 'limit=1001'],
    ['limit', 'limit=many'],
    ['after_id', 'after_id=nobody/nothing'],
    ['before_id', `before_id=${CLAUDE}&after_id=${CLAUDE}`],
    ['lifecycle', 'lifecycle[]=young'],
    ['type', 'type=none'],
  ])("rejects an invalid %s in Anthropic's format: %s", async (param, query) => {
    const { status, body } = await world.send('GET', `/v1/models?${query}`, { headers });
    expect([status, body.type, body.error.type, body.error.details.param]).toEqual([
      400,
      'error',
      'invalid_request_error',
      param,
    ]);
  });

  test('has the stages that the request names', async () => {
    const row = (id: string, expiration_date: string | null) =>
      ({ id, name: id, created: 1, top_provider: {}, expiration_date }) as ModelJson;
    const models = [[row('a', null), row('b', '2026-12-20')], [row('c', '2026-01-02')]] as const;
    const list = (lifecycle?: unknown, all = false) =>
      createAnthropicModelPage(models, { 'lifecycle[]': lifecycle }, all).data;
    expect(list().map(({ id, lifecycle }) => [id, lifecycle])).toEqual([
      ['a', 'active'],
      ['b', 'deprecated'],
    ]);
    expect(list(undefined, true)).toHaveLength(3);
    expect(list(['active', 'retired']).map(({ id }) => id)).toEqual(['a', 'c']);
    expect(list('retired')).toMatchObject([{ lifecycle: 'retired', retires_at: '2026-01-02T00:00:00.000Z' }]);
    expect((await client.models.list({ lifecycle: ['retired'] })).data).toEqual([]);
  });

  test('has its own format for other clients, and differs by the header in caches', async () => {
    const { headers: received, body } = await world.get('/v1/models?limit=1');
    expect(body).toMatchObject({ object: 'list', total_count: body.data.length });
    expect(received.get('vary')).toContain('anthropic-version');
  });
});

describe('a model', () => {
  test.each([CLAUDE, 'claude-haiku-4-5'])("has Anthropic's fields: %s", async (name) => {
    const model = await client.models.retrieve(name);
    expect(model).toMatchObject({ type: 'model', id: CLAUDE, created_at: expect.stringMatching(TIME) });
    const { data } = await client.models.list({ limit: 1_000 });
    expect(data).toContainEqual(JSON.parse(JSON.stringify(model)));
  });

  test('that does not exist is a NotFoundError with a request id', async () => {
    const error = await client.models.retrieve('nobody/nothing').catch((reason) => reason);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ status: 404, type: 'not_found_error', requestID: expect.any(String) });
  });
});

describe('a path that does not exist', () => {
  test('is a NotFoundError with a request id', async () => {
    const error = await client.messages.batches.list().then(undefined, (reason) => reason);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ status: 404, type: 'not_found_error', requestID: expect.any(String) });
  });

  test.each([
    ['GET', '/v1/messages/batches', 404],
    ['POST', '/messages/nothing', 404],
    ['GET', '/v1/messages', 405],
    ['DELETE', '/v1/messages/count_tokens', 405],
  ] as const)("has Anthropic's format without its header, too: %s %s", async (method, path, status) => {
    const answer = await world.send(method, path);
    expect([answer.status, answer.body.type]).toEqual([status, 'error']);
    expect(answer.headers.get('request-id')).toBe(answer.body.request_id);
  });

  test("has Anthropic's format with its header, and OpenAI's without", async () => {
    expect((await world.send('GET', '/v1/nothing', { headers })).body.type).toBe('error');
    expect((await world.send('GET', '/v1/nothing')).body.error.code).toBe('not_found');
    expect((await world.send('GET', '/v1/messagesque')).body.status).toBe('error');
  });
});
