/** Files of chats and Responses by URL. The server that has the files also counts the requests for them. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { openTappedWorld, type TappedWorld, type TestAccount, type TestWorld, type Wiretap } from '#testing';

const PDF = Buffer.from('%PDF-1.4 a small document');
const FILES: Readonly<Record<string, Buffer>> = {
  '/a.pdf': PDF,
  '/b.txt': Buffer.from('Grüezi'),
  '/long.txt': Buffer.from('word '.repeat(100_000)),
  '/binary': Buffer.from([0xff, 0xfe, 0, 1]),
  '/huge.pdf': Buffer.concat([PDF, Buffer.alloc(17 * 1024 * 1024)]),
};
/** Models with Responses, with chat completions, with Anthropic's Messages and with Google's API. */
const MODELS = ['openai/gpt-5-mini', 'openai/gpt-4o', 'anthropic/claude-haiku-4.5', 'google/gemini-3.8-flash'];

let server: Server;
let origin: string;
let fetched: string[];
let tapped: TappedWorld;
let tap: Wiretap;
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  server = createServer(({ url = '' }, response) => {
    fetched.push(url);
    response.statusCode = FILES[url] ? 200 : 404;
    response.end(FILES[url]);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  tapped = await openTappedWorld([], { PRIVATE_SOURCES: origin });
  ({ tap, world } = tapped);
  account = await world.createAccount(105);
});
afterAll(async () => {
  await tapped.close();
  server.close();
});
beforeEach(() => {
  fetched = [];
  tap.takeReceived();
});

const text = { type: 'input_text', text: '[[sandbox tokens=4]]' };
const respond = (model: string, urls: readonly string[], by = account, more = {}) => {
  const content = [text, ...urls.map((url) => ({ type: 'input_file', file_url: url }))];
  return world.post('/v1/responses', { model, max_output_tokens: 50, input: [{ role: 'user', content }], ...more }, by);
};

describe('a file by URL', () => {
  test.each(MODELS)('is fetched and sent to %s with the request', async (model) => {
    const { status } = await respond(model, [`${origin}/a.pdf`, `${origin}/b.txt`]);
    expect([status, fetched]).toEqual([200, ['/a.pdf', '/b.txt']]);
    const sent = JSON.stringify(tap.takeReceived()[0]?.body);
    expect(sent).toContain(PDF.toString('base64'));
    expect(sent).not.toContain(origin);
  });

  test('is fetched once for a chat that names it twice, and not for a payer with too little money', async () => {
    const part = { type: 'file', file: { file_url: `${origin}/a.pdf` } };
    const content = [{ type: 'text', text: '[[sandbox tokens=4]]' }, part, part];
    const body = { model: 'openai/gpt-4o', max_tokens: 50, messages: [{ role: 'user', content }] };
    const poor = await world.createAccount(0.105);
    expect([(await world.post('/v1/chat/completions', body, poor)).status, fetched]).toEqual([402, []]);
    expect([(await world.post('/v1/chat/completions', body, account)).status, fetched]).toEqual([200, ['/a.pdf']]);
  });

  test.each(MODELS.slice(0, 3))(
    'is fetched again if a streamed request to %s continues its conversation',
    async (model) => {
      const first = await respond(model, [`${origin}/a.pdf`], account, { store: true });
      tap.takeReceived();
      const next = {
        model,
        stream: true,
        max_output_tokens: 50,
        previous_response_id: first.body.id,
        input: text.text,
      };
      const { status, events } = await world.post('/v1/responses', next, account);
      expect([status, events.at(-2).type, fetched]).toEqual([200, 'response.completed', ['/a.pdf', '/a.pdf']]);
      expect(JSON.stringify(tap.takeReceived()[0]?.body)).toContain(PDF.toString('base64'));
    },
  );

  test('is part of the hold with the bound of a PDF', async () => {
    const before = (await world.listEvents(account)).length;
    await respond('openai/gpt-5-mini', [`${origin}/b.txt`]);
    const [held] = (await world.listEvents(account)).slice(before);
    if (held?.type !== 'FundsHeld') throw new Error('nothing was held');
    // 300,000 tokens at 0.25 USD per million
    expect(BigInt(held.data.amount)).toBeGreaterThan(75_000_000_000n);
  });

  test.each([
    ['a text with too many tokens', '/long.txt'],
    ['neither a PDF nor a text', '/binary'],
    ['too large', '/huge.pdf'],
    ['missing', '/missing'],
  ])('is rejected if it is %s, and costs nothing', async (_, file) => {
    const before = (await world.listEvents(account)).length;
    const { status, body } = await respond('openai/gpt-5-mini', [origin + file]);
    expect([status, body.error.param]).toEqual([400, 'file_url']);
    const events = (await world.listEvents(account)).slice(before);
    expect(events.map(({ type }) => type)).toEqual(['FundsHeld', 'HoldReleased']);
    expect(tap.takeReceived()).toEqual([]);
  });

  test('counts towards the memory for large requests before money is held', async () => {
    const gateway = await world.startGateway({ maxBytesInFlight: 8 * 1024 * 1024 });
    const before = (await world.listEvents(account)).length;
    const content = [text, { type: 'input_file', file_url: `${origin}/a.pdf` }];
    const body = { model: 'openai/gpt-5-mini', input: [{ role: 'user', content }] };
    const { status } = await world.post('/v1/responses', body, account, gateway.api);
    expect([status, fetched, (await world.listEvents(account)).length]).toEqual([503, [], before]);
    await gateway.close();
  });

  test.each(['http://10.0.0.7/a.pdf', 'http://localhost/a.pdf', 'http://169.254.169.254/latest/meta-data'])(
    'is not fetched from a private address: %s',
    async (url) => {
      const { status, body } = await respond('openai/gpt-5-mini', [url]);
      expect([status, body.error.param]).toEqual([400, 'file_url']);
    },
  );

  test.each([
    ['more than 5 files', Array.from({ length: 6 }, (_, n) => `http://a.example/${n}`)],
    ['another protocol', ['file:///etc/passwd']],
    ['an invalid URL', ['http://']],
  ])('is rejected before money is held: %s', async (_, urls) => {
    const before = (await world.listEvents(account)).length;
    expect((await respond('openai/gpt-5-mini', urls)).status).toBe(400);
    expect([(await world.listEvents(account)).length, fetched]).toEqual([before, []]);
  });
});
