import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI, { APIError } from 'openai';
import { TestWorld } from '#testing';

const HELLO = { model: 'openai/gpt-5-mini', messages: [{ role: 'user' as const, content: '[[sandbox tokens=3]]' }] };

let world: TestWorld;
let client: OpenAI;
let poor: OpenAI;
beforeAll(async () => {
  world = await TestWorld.open();
  const clientOf = async (usd: number) => {
    const { apiKey } = await world.createAccount(usd);
    return new OpenAI({ apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
  };
  [client, poor] = await Promise.all([clientOf(1.05), clientOf(0)]);
});
afterAll(() => world.close());

const errorOf = (promise: PromiseLike<unknown>): Promise<APIError> =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('the request was not rejected')),
    (error) => error,
  );

/** OpenAI's unmodified client for Node. */
describe("OpenAI's client", () => {
  test('completes a chat', async () => {
    const { data, request_id } = await client.chat.completions.create(HELLO).withResponse();
    expect(data.choices[0]?.message.content).toBe('every coin that');
    expect(data.usage?.total_tokens).toBe(18);
    expect(data.id).toBe(`gen-${request_id}`);
  });

  test('streams a chat including its usage', async () => {
    const stream = client.chat.completions.stream({ ...HELLO, stream_options: { include_usage: true } });
    expect(await stream.finalContent()).toBe('every coin that');
    expect((await stream.totalUsage()).total_tokens).toBe(18);
  });

  test('gets usage that it did not request in a chunk without choices, which hides no finish reason', async () => {
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of await client.chat.completions.create({ ...HELLO, stream: true })) chunks.push(chunk);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 18 } });
  });

  test('throws an error with the reason if a stream ends early', async () => {
    const messages = [{ role: 'user' as const, content: '[[sandbox tokens=8 fault=cut]]' }];
    const stream = await client.chat.completions.create({ ...HELLO, messages, stream: true });
    let text = '';
    const read = async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';
    };
    expect(await errorOf(read())).toMatchObject({ message: expect.stringContaining('response early') });
    expect(text).toBe('every coin that comes ');
  });

  test('lists the models and retrieves one by its id', async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids).toContain(HELLO.model);
    expect(await client.models.retrieve(HELLO.model)).toMatchObject({ id: HELLO.model, object: 'model' });
  });

  test.each<[string, number, () => PromiseLike<unknown>]>([
    ['too little money', 402, () => poor.chat.completions.create(HELLO)],
    ['an unknown model', 404, () => client.chat.completions.create({ ...HELLO, model: 'nope' })],
    ['an invalid request', 400, () => client.chat.completions.create({ ...HELLO, messages: [] })],
    ['an unknown key', 401, () => client.withOptions({ apiKey: 'sk-x' }).chat.completions.create(HELLO)],
    [
      'a provider that fails',
      502,
      () =>
        client.chat.completions.create({
          ...HELLO,
          messages: [{ role: 'user', content: '[[sandbox fault=malformed]]' }],
        }),
    ],
  ])('throws an APIError for %s', async (_, status, ask) => {
    const error = await errorOf(ask());
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({
      status,
      code: expect.any(String),
      type: expect.any(String),
      requestID: expect.any(String),
    });
    expect(error.message.startsWith(`${status} `)).toBe(true);
  });
});
