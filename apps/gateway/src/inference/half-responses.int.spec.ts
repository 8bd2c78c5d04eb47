/** Responses that appear complete but are not, and fields of providers that clients must not get. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { listCharges, type TestAccount, type TestResponse, TestWorld } from '#testing';
import { respondWithEvents, respondWithJson, StubServer } from '../../../../libs/testing/src/servers/stub-server.ts';

const GROQ = 'openai/gpt-oss-20b';
const ROUTED = 'mistralai/mistral-large-3';
const TEXT = 'Every coin has two sides.';

const provider = new StubServer();
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  const url = await provider.listen();
  world = await TestWorld.open(async (sandbox) => ({
    GROQ_API_KEY: 'secret',
    GROQ_BASE_URL: `${url}/v1`,
    OPENROUTER_API_KEY: 'secret',
    OPENROUTER_BASE_URL: `${url}/v1`,
    EXA_API_KEY: 'secret',
    EXA_BASE_URL: `${sandbox}/exa`,
  }));
});
afterAll(async () => {
  await world.close();
  await provider.close();
});
beforeEach(async () => {
  account = await world.createAccount(1);
  provider.requests.length = 0;
});

const chat = (model: string, more: object = {}) => world.sendChat(account, '', { model, max_tokens: 100, ...more });
const listItems = async () => listCharges(await world.listEvents(account)).flatMap(({ items }) => items);

const listChoices = ({ events }: TestResponse) => events.flatMap(({ choices = [] }) => choices);
const listFinishReasons = (response: TestResponse) =>
  listChoices(response).flatMap(({ finish_reason }) => finish_reason ?? []);

const HEAD = { id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'theirs' };
const USAGE = { queue_time: 0.1, prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 };
const toChunk = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  ...HEAD,
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});
const START = toChunk({ role: 'assistant', content: '' }, null, { x_groq: { id: 'req_1' } });
const SPOKEN = toChunk({ content: TEXT });

describe('a stream of Groq', () => {
  const only = { model: GROQ, provider: { only: ['groq'] } };

  test('that was stopped early by its x_groq is an interrupted stream, charged for its text and not repeated', async () => {
    provider.handler = respondWithEvents([
      START,
      SPOKEN,
      toChunk({}, 'stop', { x_groq: { id: 'req_1', error: 'over' } }),
    ]);

    const response = await chat(GROQ, { ...only, stream: true });

    expect(response.events.find(({ error }) => error)).toMatchObject({ error: { code: 'upstream_error' } });
    expect(listFinishReasons(response)).toEqual(['error']);
    expect(provider.requests).toHaveLength(1);
    expect(await listItems()).toMatchObject([{ of: GROQ, estimated: true }]);
  });

  test('is charged by the usage of its x_groq if it reports no other, and the client gets no x_groq', async () => {
    provider.handler = respondWithEvents([
      START,
      SPOKEN,
      toChunk({}, 'stop', { x_groq: { id: 'req_1', usage: USAGE } }),
    ]);

    const response = await chat(GROQ, { ...only, stream: true });

    expect(response.text).not.toContain('x_groq');
    expect(listFinishReasons(response)).toEqual(['stop']);
    expect(await listItems()).toMatchObject([{ estimated: false, usage: { input: 5, output: 9 } }]);
  });

  test('that is not streamed also hides its x_groq', async () => {
    const choices = [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }];
    provider.handler = respondWithJson({ ...HEAD, choices, usage: USAGE, x_groq: { id: 'req_1', seed: 3 } });

    const { body } = await chat(GROQ, only);

    expect(body.choices[0].message.content).toBe(TEXT);
    expect(body).not.toHaveProperty('x_groq');
    expect(await listItems()).toMatchObject([{ estimated: false, usage: { input: 5, output: 9 } }]);
  });
});

test.each([
  ['before', { provider: 'Theirs', ...HEAD }],
  ['behind', { ...HEAD, provider: 'Theirs' }],
])('a chunk of a router that names its provider %s the model has the provider once', async (_, head) => {
  const withHead = (chunk: object) => ({ ...head, choices: [], ...chunk, ...head });
  provider.handler = respondWithEvents([START, SPOKEN, toChunk({}, 'stop')].map(withHead));

  const { text } = await chat(ROUTED, { stream: true });

  const chunks = text.split('\n\n').filter((event) => event.includes('"delta"') && !event.includes('"usage"'));
  expect(chunks.length).toBeGreaterThan(2);
  for (const chunk of chunks) expect(chunk.match(/"provider":"[^"]*"/g)).toHaveLength(1);
  expect(text).not.toContain('Theirs');
});

test('a stream with the search plugin starts with the role, followed by its sources', async () => {
  provider.handler = respondWithEvents([START, SPOKEN, toChunk({}, 'stop')]);

  const response = await chat(GROQ, { provider: { only: ['groq'] }, stream: true, plugins: [{ id: 'web' }] });

  const deltas = listChoices(response).map(({ delta }) => delta);
  expect(deltas[0]).toMatchObject({ role: 'assistant' });
  expect(deltas[1].annotations[0]).toMatchObject({ type: 'url_citation' });
  expect(deltas.filter(({ role }) => role !== undefined)).toHaveLength(1);
  expect(deltas.map(({ content = '' }) => content).join('')).toBe(TEXT);
});
