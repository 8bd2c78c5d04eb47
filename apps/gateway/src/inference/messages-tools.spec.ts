/** Tools in messages, with Anthropic's unmodified client and its tool runner. */
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { listCharges, type TestAccount, TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const GPT = 'openai/gpt-5-mini';

let world: TestWorld;
let account: TestAccount;
let client: Anthropic;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(105);
  client = new Anthropic({ apiKey: account.apiKey, baseURL: world.api, maxRetries: 0 });
});
afterAll(() => world.close());

describe('the tool runner', () => {
  test.each([
    [CLAUDE, false],
    [CLAUDE, true],
    [GPT, false],
    [GPT, true],
  ])('sends the conversation without a thread and ends, with %s, streamed: %s', async (model, stream) => {
    const cities: unknown[] = [];
    const weather = betaTool({
      name: 'weather',
      description: 'Returns the weather',
      inputSchema: { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] },
      run: ({ city }) => {
        cities.push(city);
        return 'fine';
      },
    });
    const before = listCharges(await world.listEvents(account)).length;
    const messages = [{ role: 'user' as const, content: '[[sandbox tool=weather]]' }];
    const runner = client.beta.messages.toolRunner({ model, max_tokens: 2_000, tools: [weather], messages, stream });
    const last = await runner.runUntilDone();
    expect([last.stop_reason, cities]).toEqual(['end_turn', ['Ur']]);
    expect(listCharges(await world.listEvents(account))).toHaveLength(before + 2);
  });

  test('gets the error by which it knows that threads are not supported', async () => {
    const asked = { model: CLAUDE, max_tokens: 99, messages: [{ role: 'user' as const, content: 'Hello' }] };
    const error = await client.beta.messages
      .create({ ...asked, thread: { type: 'create' } })
      .then(undefined, (reason) => reason);
    expect(error).toBeInstanceOf(APIError);
    expect(error.error.error).toMatchObject({
      type: 'invalid_request_error',
      details: { error_code: 'thread_unsupported_request', param: 'thread' },
    });
  });
});
