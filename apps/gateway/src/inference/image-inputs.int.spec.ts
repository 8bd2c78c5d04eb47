/** Images in chats, responses and messages: a model gets every image of a request, or the request is rejected. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isPrivate, readCatalogue } from '#catalogue';
import { openTappedWorld, PIXEL, sampleCases, type TappedWorld, type TestAccount } from '#testing';

const IMAGE = `data:image/png;base64,${PIXEL.toString('base64')}`;
const SOURCE = { type: 'base64', media_type: 'image/png', data: PIXEL.toString('base64') };
const ASK = '[[sandbox tokens=2]]';

let tapped: TappedWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld();
  account = await tapped.world.createAccount(1_050);
});
afterAll(() => tapped.close());

const models = readCatalogue().models.filter((model) => !('simulated' in model));
const chats = models.filter((model) => model.type === 'chat' && !isPrivate(model));
const blind = chats.filter(({ inputs }) => !inputs.includes('image')).map(({ id }) => id);
const seeing = chats.filter(({ inputs }) => inputs.includes('image')).map(({ id }) => id);

const part = { type: 'image_url', image_url: { url: IMAGE } };
const called = {
  role: 'assistant',
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
};
const question = { role: 'user', content: ASK };

/** Requests with an image in each place where the three APIs accept one. */
const REQUESTS: readonly (readonly [place: string, path: string, body: object])[] = [
  [
    'a user message',
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: [{ type: 'text', text: ASK }, part] }] },
  ],
  [
    'the result of a tool',
    '/v1/chat/completions',
    { messages: [question, called, { role: 'tool', tool_call_id: 'c', content: [part] }] },
  ],
  [
    'an input message',
    '/v1/responses',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: IMAGE }] }] },
  ],
  [
    'the output of a function',
    '/v1/responses',
    {
      input: [
        question,
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: IMAGE }] },
      ],
    },
  ],
  ['a turn', '/v1/messages', { messages: [{ role: 'user', content: [{ type: 'image', source: SOURCE }] }] }],
  [
    'a tool result',
    '/v1/messages',
    {
      messages: [
        question,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'image', source: SOURCE }] }],
        },
      ],
    },
  ],
];
const send = (path: string, body: object) =>
  tapped.world.post(path, { max_tokens: 64, max_output_tokens: 64, ...body }, account);

describe.each(REQUESTS.map((request, index) => [...request, index] as const))(
  'an image in %s (%s)',
  (_, path, body, index) => {
    test('is rejected for every model that takes none, before money is held', async () => {
      const before = (await tapped.world.listEvents(account)).length;
      for (const model of sampleCases(blind, 4, index)) {
        const { status, text } = await send(path, { model, ...body });
        expect([model, status, text]).toEqual([model, 400, expect.stringContaining('but not image')]);
      }
      expect(tapped.tap.takeReceived()).toEqual([]);
      expect((await tapped.world.listEvents(account)).length).toBe(before);
    });

    test('reaches the provider of a model that takes images', async () => {
      for (const model of sampleCases(seeing, 4, index)) {
        const { status } = await send(path, { model, ...body });
        const received = tapped.tap.takeReceived();
        expect([model, status]).toEqual([model, 200]);
        expect(JSON.stringify(received.map((request) => request.body))).toContain(SOURCE.data);
      }
    });
  },
);

test('images next to the content of a message, as other APIs have them, are rejected', async () => {
  for (const model of [blind[0], seeing[0]]) {
    const { status, body } = await send('/v1/chat/completions', {
      model,
      messages: [{ ...question, images: [IMAGE] }],
    });
    expect([status, body.error.param]).toEqual([400, 'messages[0].images']);
  }
  const messages = [{ ...question, images: [] }];
  expect((await send('/v1/chat/completions', { model: blind[0], messages })).status).toBe(200);
});
