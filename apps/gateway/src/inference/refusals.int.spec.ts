/** Refusals with their category and explanation, in every protocol. */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { listCharges, type TestAccount, TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const OPENAI = 'openai/gpt-4o-mini';
const DIRECTIVE = '[[sandbox text="No, never." fault=refusal]]';
const EXPLANATION = 'The request could enable cyber harm, as the sandbox was instructed.';
const DETAILS = { type: 'refusal', category: 'cyber', explanation: EXPLANATION };

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());
beforeEach(async () => {
  account = await world.createAccount(1);
  await world.bill.clear();
});

const openai = () => new OpenAI({ baseURL: `${world.api}/v1`, apiKey: account.apiKey, maxRetries: 0 });
const anthropic = () => new Anthropic({ baseURL: world.api, apiKey: account.apiKey, maxRetries: 0 });
const messages = [{ role: 'user' as const, content: DIRECTIVE }];
const listItems = async () => listCharges(await world.listEvents(account)).flatMap(({ items }) => items);

describe.each([
  ['whole', false],
  ['streamed', true],
])('a refusal of Anthropic that is %s', (_, isStreamed) => {
  test('explains itself in a chat, and is charged once', async () => {
    const body = { model: CLAUDE, messages, max_tokens: 100 };
    const chat = isStreamed
      ? await openai().chat.completions.stream(body).finalChatCompletion()
      : await openai().chat.completions.create(body);

    expect(chat.choices).toMatchObject([
      {
        finish_reason: 'content_filter',
        message: { content: 'No, never.', refusal: EXPLANATION },
        stop_details: DETAILS,
      },
    ]);
    expect(await listItems()).toMatchObject([{ of: CLAUDE, estimated: false }]);
  });

  test('has its details in a message', async () => {
    const body = { model: CLAUDE, messages, max_tokens: 100 };
    const message = isStreamed
      ? await anthropic().messages.stream(body).finalMessage()
      : await anthropic().messages.create(body);

    expect(message).toMatchObject({ stop_reason: 'refusal', stop_details: DETAILS });
    expect(message.content).toMatchObject([{ type: 'text', text: 'No, never.' }]);
  });

  test('is a refusal part of a response', async () => {
    const body = { model: CLAUDE, input: DIRECTIVE, max_output_tokens: 100 };
    const response = isStreamed
      ? await openai().responses.stream(body).finalResponse()
      : await openai().responses.create(body);

    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } });
    expect(response.output).toMatchObject([
      {
        content: [
          { type: 'output_text', text: 'No, never.' },
          { type: 'refusal', refusal: EXPLANATION },
        ],
      },
    ]);
  });
});

describe.each([
  ['whole', false],
  ['streamed', true],
])('a refusal of OpenAI that is %s', (_, isStreamed) => {
  test('is the stop reason of a message, with the text as its explanation', async () => {
    const body = { model: OPENAI, messages, max_tokens: 100 };
    const message = isStreamed
      ? await anthropic().messages.stream(body).finalMessage()
      : await anthropic().messages.create(body);

    expect(message).toMatchObject({
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: null, explanation: 'No, never.' },
      content: [{ type: 'text', text: 'No, never.' }],
    });
  });
});

test('a message that ends by itself has no stop details', async () => {
  const message = await anthropic().messages.create({
    model: CLAUDE,
    messages: [{ role: 'user', content: 'Hello' }],
    max_tokens: 100,
  });
  expect(message).toMatchObject({ stop_reason: 'end_turn', stop_details: null });
});
