/** OpenAI's client for Node with the legacy API: text completions, and functions instead of tools. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI, { APIError } from 'openai';
import { listCharges, type TestAccount, TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const GPT = 'openai/gpt-5-mini';
const OPEN = 'openai/gpt-oss-120b';
const MODELS = [GPT, CLAUDE, OPEN];
const SAID = 'every coin that';

let world: TestWorld;
let account: TestAccount;
let client: OpenAI;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(105);
  client = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
});
afterAll(() => world.close());

const errorOf = (promise: PromiseLike<unknown>): Promise<APIError> =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('the request was not rejected')),
    (error) => error,
  );

async function collected<T>(pieces: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
}

describe('a text completion', () => {
  const asked = { model: GPT, prompt: '[[sandbox tokens=3]]' };

  test.each(MODELS)('is created by %s, and its cost matches the charge in the ledger', async (model) => {
    const { usage, choices, ...whole } = await client.completions.create({ ...asked, model });
    expect(whole).toMatchObject({ id: expect.stringMatching(/^gen-/), object: 'text_completion', model });
    expect(choices).toEqual([{ text: SAID, index: 0, logprobs: null, finish_reason: 'stop' }]);
    const [charge] = listCharges((await world.listEvents(account)).slice(-1));
    const { cost, completion_tokens } = usage as OpenAI.CompletionUsage & { cost: number };
    expect([charge?.price, completion_tokens]).toEqual([String(Math.round(cost * 1e12)), 3]);
  });

  test.each(MODELS)('is streamed by %s, with the usage at the end', async (model) => {
    const stream = await client.completions.create({ ...asked, model, prompt: [asked.prompt], stream: true });
    const chunks = await collected(stream);
    for (const { object, choices } of chunks.slice(0, -1))
      expect([object, choices[0]?.index]).toEqual(['text_completion', 0]);
    expect(chunks.map(({ choices }) => choices[0]?.text).join('')).toBe(SAID);
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop']);
    const usage = { completion_tokens: 3, cost: expect.any(Number) };
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
  });

  test('respects max_tokens, and numbers its choices', async () => {
    const prompt = '[[sandbox tokens=40]]';
    const { choices } = await client.completions.create({ ...asked, prompt, max_tokens: 20, n: 2, best_of: 2 });
    expect(choices.map(({ index, finish_reason }) => [index, finish_reason])).toEqual([
      [0, 'length'],
      [1, 'length'],
    ]);
  });

  test('leads to an error with the reason if its stream ends early', async () => {
    const stream = await client.completions.create({
      ...asked,
      prompt: '[[sandbox tokens=8 fault=cut]]',
      stream: true,
    });
    expect(await errorOf(collected(stream))).toMatchObject({ message: expect.stringContaining('response early') });
  });

  test.each<[string, object]>([
    ['prompt', { prompt: '' }],
    ['prompt', { prompt: ['a', 'b'] }],
    ['prompt', { prompt: [1, 2] }],
    ['prompt', { prompt: [[1, 2]] }],
    ['prompt', { prompt: null }],
    ['echo', { echo: true }],
    ['suffix', { suffix: 'the end' }],
    ['logprobs', { logprobs: 0 }],
    ['best_of', { best_of: 3 }],
    ['n', { n: 0 }],
    ['logit_bias', { logit_bias: { 1000000: 1 } }],
  ])('is rejected before money is held if a field is invalid or not supported: %s', async (param, more) => {
    const before = (await world.listEvents(account)).length;
    const error = await errorOf(client.completions.create({ ...asked, ...more } as typeof asked));
    expect(error).toBeInstanceOf(APIError);
    expect([error.status, error.param]).toEqual([400, param]);
    expect(await world.listEvents(account)).toHaveLength(before);
  });

  test('is recorded in the history with its own query type', async () => {
    await world.waitUntil(async () => {
      const { body } = await world.get('/queries/history?query_type=completion', account);
      return body.data.length > 0;
    });
  });
});

describe('functions', () => {
  const weather = {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] },
  };
  const user = { role: 'user' as const, content: 'How is it? [[sandbox tool=weather]]' };
  const asked = { messages: [user], functions: [weather] };

  test.each(MODELS)('are called by %s, and the model continues with their results', async (model) => {
    const [choice] = (await client.chat.completions.create({ ...asked, model })).choices;
    const { message } = choice as OpenAI.ChatCompletion.Choice;
    expect(choice?.finish_reason).toBe('function_call');
    expect(message.function_call).toMatchObject({ name: 'weather', arguments: '{"city":"Ur"}' });
    expect(message).not.toHaveProperty('tool_calls');
    const result = { role: 'function' as const, name: 'weather', content: 'fine' };
    const second = await client.chat.completions.create({ ...asked, model, messages: [user, message, result] });
    expect(second.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: expect.stringMatching(/./) },
    });
  });

  test.each(MODELS)('are called in a stream of %s', async (model) => {
    const chunks = await collected(await client.chat.completions.create({ ...asked, model, stream: true }));
    const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.function_call ?? []);
    expect(calls[0]?.name).toBe('weather');
    expect(calls.map((call) => call.arguments ?? '').join('')).toBe('{"city":"Ur"}');
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['function_call']);
    for (const { choices } of chunks.slice(0, -1)) expect(choices[0]?.delta).not.toHaveProperty('tool_calls');
  });

  test('are called as function_call requires', async () => {
    const of = async (function_call: 'none' | 'auto' | { name: string }, content: string) => {
      const messages = [{ role: 'user' as const, content }];
      const body = { ...asked, model: GPT, messages, function_call };
      return (await client.chat.completions.create(body)).choices[0]?.finish_reason;
    };
    expect(await of({ name: 'weather' }, 'Hello')).toBe('function_call');
    expect(await of('none', 'Hello')).toBe('stop');
    expect(await of('auto', 'Hello')).toBe('stop');
  });

  test.each<[string, object]>([
    ['functions', { functions: 'weather' }],
    ['functions', { tools: [{ type: 'function', function: weather }] }],
    ['functions[0]', { functions: [null] }],
    ['functions[0].name', { functions: [{}] }],
    ['function_call', { function_call: { name: 'news' } }],
    ['function_call', { function_call: 7 }],
    ['messages[1].name', { messages: [user, { role: 'function', name: 'weather', content: 'x' }] }],
    ['messages[1].function_call', { messages: [user, { role: 'assistant', function_call: { name: 'weather' } }] }],
  ])('are rejected before money is held if a field is invalid: %s', async (param, more) => {
    const before = (await world.listEvents(account)).length;
    const { status, body } = await world.post('/v1/chat/completions', { ...asked, model: GPT, ...more }, account);
    expect([status, body.error.param]).toEqual([400, param]);
    expect(await world.listEvents(account)).toHaveLength(before);
  });
});
