/**
 * All providers here return errors that contain the operator's account and key, the provider's hosts and the request.
 * None of that reaches an event, the database or the log. A customer receives nothing about the operator or the hosts,
 * and a message of a provider only if the customer can correct the error.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Clock } from '#application';
import { readProviders } from '#catalogue';
import {
  createForm,
  dumpDatabase,
  LogTap,
  sampleCases,
  shiftClock,
  type TestAccount,
  type TestResponse,
  TestWorld,
} from '#testing';
import { StubServer } from '../../../../../libs/testing/src/servers/stub-server.ts';

const ADVICE = 'Advice: temperature must be at most two';
const PROMPT = 'a planted prompt';
const OURS = [
  'org-Canary4711',
  'proj_Canary0815',
  'sk-proj-canary99x8',
  '10.20.30.40',
  'gpu-7.canary.internal',
  'canary@vendor.example',
];
const PRIVATE = [PROMPT, ADVICE, ...OURS];
/** The last ones let the providers rest, so that they are not called for a while. */
const STATUSES = [400, 404, 422, 500, 401, 402];
/** Statuses that concern the operator's account at the provider: the caller has a valid API key and enough money. */
const OURS_ALONE = [401, 402];

const vendor = new StubServer();
const log = new LogTap();
const keyOf = (env: string) => `planted-${env.toLowerCase()}/credential+=1`;
const keys = readProviders().map(({ env }) => keyOf(env));
let world: TestWorld;
let account: TestAccount;
let status = 400;
let restoreClock = () => {};

beforeAll(async () => {
  const url = await vendor.listen();
  const settings = readProviders().flatMap(({ env }) => [
    [`${env}_BASE_URL`, url],
    [`${env}_API_KEY`, keyOf(env)],
  ]);
  world = await TestWorld.openWithSagas({
    ...Object.fromEntries(settings),
    LOG_LEVEL: 'trace',
    REFUSED_PROMPTS_PER_HOUR: '10000',
  });
  account = await world.createAccount(1_050);
});
afterAll(async () => {
  restoreClock();
  log.restore();
  await world.close();
  await vendor.close();
});

/**
 * Returns an error with text in the fields that providers use for errors. The text includes what the provider was sent,
 * and is cut at 2,000 characters.
 */
function complaint(headers: IncomingHttpHeaders, line: string, body: string): string {
  const key = Object.values(headers).filter((value) => value?.includes('planted'));
  const words = `${ADVICE}. ${key} ${OURS.join(' ')} ${line} ${body} ${JSON.stringify(headers)}`.slice(0, 2_000);
  const error = { message: words, type: words, code: words, param: words, status: words };
  const detail = [{ loc: ['body', words], msg: words, type: words }];
  return JSON.stringify({ error, detail, message: words, err_msg: words, request_id: words, id: words });
}

/** Returns a stream that begins with text in the formats of chats and of responses, and ends with an error. */
function broken(words: string): string {
  const error = { type: words, code: words, message: words };
  const events = [
    { id: words, choices: [{ index: 0, delta: { content: 'So ' } }] },
    { type: 'response.output_text.delta', output_index: 0, item_id: 'i', content_index: 0, delta: 'So ' },
    { ...error, type: 'error', error, choices: [] },
  ];
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
}

const HELLO = [{ role: 'user', content: PROMPT }];
const GPT = 'openai/gpt-5-mini';
const CLAUDE = 'anthropic/claude-sonnet-4.5';
type Request = readonly [name: string, route: string, body: () => unknown];

const REQUESTS: readonly Request[] = [
  ['a chat', '/v1/chat/completions', () => ({ model: GPT, messages: HELLO })],
  ['a streamed chat', '/v1/chat/completions', () => ({ model: GPT, messages: HELLO, stream: true })],
  ['a chat of Claude', '/v1/chat/completions', () => ({ model: CLAUDE, messages: HELLO, max_tokens: 9 })],
  ['a completion', '/v1/completions', () => ({ model: GPT, prompt: PROMPT })],
  ['a response', '/v1/responses', () => ({ model: GPT, input: PROMPT })],
  ['a streamed response', '/v1/responses', () => ({ model: GPT, input: PROMPT, stream: true })],
  ['a message', '/v1/messages', () => ({ model: CLAUDE, messages: HELLO, max_tokens: 9 })],
  ['a streamed message', '/v1/messages', () => ({ model: CLAUDE, messages: HELLO, max_tokens: 9, stream: true })],
  [
    'a search',
    '/v1/chat/completions',
    () => ({ model: GPT, messages: HELLO, plugins: [{ id: 'web', engine: 'exa' }] }),
  ],
  ['an embedding', '/v1/embeddings', () => ({ model: 'openai/text-embedding-3-small', input: PROMPT })],
  ['an image of fal', '/v1/images/generations', () => ({ model: 'black-forest-labs/flux-1-schnell', prompt: PROMPT })],
  ['an image of OpenAI', '/v1/images/generations', () => ({ model: 'openai/gpt-image-1.5', prompt: PROMPT })],
  ['an edit', '/v1/images/edits', () => createForm({ model: 'openai/gpt-image-1.5', prompt: PROMPT, image: '@image' })],
  [
    'speech of Deepgram',
    '/v1/audio/speech',
    () => ({ model: 'deepgram_aura_2', input: PROMPT, voice: 'aura-2-thalia-en' }),
  ],
  ['a transcription', '/v1/audio/transcriptions', () => createForm({ model: 'nova-3', file: '@file', prompt: PROMPT })],
  ['a lookup', '/v1/data/api/serp/news', () => ({ q: PROMPT })],
];

/**
 * Whether the caller receives the provider's message. The gateway itself writes the request to a search provider: the
 * caller cannot correct it, and does not receive that provider's message.
 */
const isToMend = ([name]: Request, of: number) => [400, 413, 422].includes(of) && name !== 'a search';

async function answersWith(of: number, requests = REQUESTS): Promise<readonly (readonly [Request, TestResponse])[]> {
  status = of;
  return Promise.all(requests.map(async (each) => [each, await world.post(each[1], each[2](), account)] as const));
}

async function failedVideo(): Promise<string> {
  const { body } = await world.post(
    '/v1/videos',
    { model: 'kling/kling-2.5-turbo', prompt: PROMPT, duration: 5 },
    account,
  );
  const look = () => world.get(`/v1/videos/${body.id}`, account);
  await world.waitUntil(async () => (await look()).body.status === 'failed');
  return (await look()).text;
}

test('forwards nothing that providers report about the operator, and stores and logs none of it', async () => {
  const told: string[] = [];
  vendor.handler = (response, request, body) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'r', 'request-id': PROMPT })
      .end(complaint(request.headers, request.url ?? '', body.replace(/[^ -~]/g, '')));
  for (const [i, of] of STATUSES.entries()) {
    // A status that the caller can correct is returned to all requests, each of the others to some of them.
    const requests = of === 400 ? REQUESTS : sampleCases(REQUESTS, 6, i);
    for (const [request, { status: ours, text }] of await answersWith(of, requests)) {
      const least = OURS_ALONE.includes(of) ? 500 : 400;
      expect([request[0], of, ours, ours >= least]).toEqual([request[0], of, ours, true]);
      told.push(text);
      if (request[0] === 'a lookup') continue; // data lookups do not return messages that mention keys
      expect([text, request[0], of, text.includes(ADVICE)]).toEqual([text, request[0], of, isToMend(request, of)]);
    }
  }
  status = 400;
  restoreClock = shiftClock(world.getService(Clock), 600_000);
  told.push(await failedVideo());
  vendor.handler = (response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(broken(`${ADVICE} ${OURS.join(' ')}`));
  for (const [, { text }] of await answersWith(200)) told.push(text);
  const answers = told.join('\n');
  expect([...OURS, ...keys].filter((each) => answers.includes(each))).toEqual([]);
  const left = { facts: await world.listEvents(), stored: await dumpDatabase(world.databaseUrl), log: log.text };
  const facts = JSON.stringify(left.facts, (_, value) => (typeof value === 'bigint' ? '' : value));
  const sizes = left.facts
    .filter(({ type }) => type !== 'PriceListPublished')
    .map(({ data }) => JSON.stringify(data).length);
  expect(Math.max(...sizes)).toBeLessThan(16 * 1024);
  expect(facts).toContain('HoldReleased');
  expect(left.log).toContain('a request failed');
  for (const place of [facts, left.stored, left.log])
    expect([...PRIVATE, ...keys].filter((each) => place.includes(each))).toEqual([]);
});
