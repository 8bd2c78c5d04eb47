/** What a customer gets and pays when a provider rejects a request, over HTTP, for each protocol of chats. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Clock } from '#application';
import type { DomainEvent } from '#domain';
import {
  createTestEndpoint,
  createTestModel,
  LogTap,
  sampleCases,
  sampleSize,
  shiftClock,
  type TestAccount,
  TestWorld,
} from '#testing';

const PRICES = { usdPerMillionTokens: { input: '1', output: '2' } };
const UPSTREAMS = ['openai', 'anthropic', 'openrouter', 'groq', 'deepinfra', 'google'] as const;
/** Models that the sandbox has at each provider. */
const NAMES = {
  openai: 'gpt-5-mini',
  anthropic: 'claude-haiku-4-5',
  openrouter: 'deepseek/deepseek-r1-0528',
  groq: 'openai/gpt-oss-120b',
  deepinfra: 'openai/gpt-oss-120b',
  google: 'gemini-3.8-flash',
} as const;
const offer = (upstream: keyof typeof NAMES, more: object = {}) =>
  createTestEndpoint(upstream, upstream, { model: NAMES[upstream], ...PRICES, ...more });
const MODELS = [
  ...UPSTREAMS.map((upstream) => createTestModel(`test/${upstream}`, [offer(upstream)])),
  ...UPSTREAMS.map((upstream) =>
    createTestModel(`test/${upstream}-first`, [offer(upstream), offer(upstream === 'openai' ? 'groq' : 'openai')]),
  ),
  createTestModel('test/responses', [offer('openai', { speaks: ['responses'] })]),
];

let world: TestWorld;
let account: TestAccount;
let log: LogTap;
let restoreClock = () => {};
beforeAll(async () => {
  log = new LogTap();
  world = await TestWorld.open({ LOG_LEVEL: 'error' }, MODELS);
  account = await world.createAccount(1);
});
afterAll(async () => {
  restoreClock();
  await world.close();
  log.restore();
});

/** Lets all rests of providers end. */
const endRests = () => {
  restoreClock = shiftClock(world.getService(Clock), 600_000);
};

async function findLastHoldEnd() {
  const ends = (await world.listEvents()).filter(({ type }) => type === 'HoldSettled' || type === 'HoldReleased');
  return ends.at(-1) as Extract<DomainEvent, { type: 'HoldSettled' | 'HoldReleased' }>;
}
const listAttempts = async () => {
  const { data } = await findLastHoldEnd();
  return (
    'charge' in data && data.charge ? data.charge.attempts : (data as { attempts?: unknown }).attempts
  ) as object[];
};

describe("a problem of the operator's account", () => {
  const PROBLEMS: readonly (readonly [upstream: string, fault: string, status: number])[] = [
    ['openai', 'balance', 429],
    ['openai', 'limit', 400],
    ['openai', '401', 401],
    ['openai', '404', 404],
    ['anthropic', 'balance', 400],
    ['anthropic', 'limit', 400],
    ['anthropic', '401', 401],
    ['anthropic', '402', 402],
    ['anthropic', '404', 404],
    ['openrouter', '401', 401],
    ['openrouter', 'balance', 402],
    ['openrouter', 'limit', 403],
    ['openrouter', '404', 400],
    ['groq', 'tokens_per_minute', 413],
    ['groq', '401', 401],
    ['groq', '404', 404],
    ['deepinfra', '401', 401],
    ['deepinfra', '402', 402],
    ['deepinfra', '404', 404],
    ['google', 'balance', 429],
    ['google', 'limit', 429],
    ['google', '401', 400],
    ['google', '404', 404],
  ];

  test.each(
    PROBLEMS.flatMap((problem, i) => sampleCases([false, true], 1, i).map((stream) => [...problem, stream] as const)),
  )(
    'at %s (%s) is 503 after one call, costs nothing, and another endpoint serves (status %i, stream: %s)',
    async (upstream, fault, status, stream) => {
      endRests();
      const balance = await world.fetchBalance(account);
      const directive = `fault=${fault} at=${upstream}`;
      const failed = await world.sendChat(account, directive, { model: `test/${upstream}`, stream });
      expect([failed.status, failed.body.error.type, failed.headers.get('retry-after')]).toEqual([
        503,
        'upstream_unavailable',
        '30',
      ]);
      expect(failed.text).not.toMatch(/quota|billing|credit|limit|key|balance|model does/i);
      expect(await listAttempts()).toMatchObject([{ outcome: 'upstream_unavailable', status }]);
      expect(await listAttempts()).toHaveLength(1);
      expect(await world.fetchBalance(account)).toBe(balance);

      endRests();
      const served = await world.sendChat(account, directive, {
        model: `test/${upstream}-first`,
        stream,
        provider: { order: [upstream], allow_fallbacks: true },
      });
      expect(served.status).toBe(200);
      expect(await listAttempts()).toMatchObject([{ provider: upstream, status }, { outcome: 'ok' }]);
    },
  );
});

describe('the operator', () => {
  test('reads one line per problem and provider, whatever the number of requests', async () => {
    endRests();
    const lines = log.text.split('\n').filter((line) => line.includes('serves no requests because'));
    const problems = lines.map((line) => /the provider \w+ serves no requests because [\w ]+/.exec(line)?.[0]);
    expect(problems.length).toBeGreaterThan(3);
    expect(log.text).toMatch(/the provider openai no longer has a model: gpt-5-mini/);
    expect(log.text).not.toMatch(/"msg":"a request failed".*upstream_unavailable/);
  });

  test('finds the counts by provider and problem in the health response', async () => {
    const { credentials } = (await world.get('/health/ready')).body.checks;
    const calls = 2 * sampleSize(2, 1); // of one test above: two for each case
    expect(credentials.failures.anthropic).toMatchObject({
      balance: 2 * calls,
      limit: calls,
      credential: calls,
      model_removed: calls,
    });
    expect((await world.get('/health/ready')).status).toBe(200);
  });
});

test('a provider that rests gets no calls, and then the response is 503 at once', async () => {
  endRests();
  const request = { model: 'test/anthropic' };
  await world.sendChat(account, 'fault=balance', request);
  const { status, headers } = await world.sendChat(account, 'tokens=4', request);
  expect([status, Number(headers.get('retry-after'))]).toEqual([503, expect.any(Number)]);
  expect(await listAttempts()).toEqual([]);
  endRests();
  expect((await world.sendChat(account, 'tokens=4', request)).status).toBe(200);
});

describe('a violation of the content policy', () => {
  test.each([
    ['test/openai', false],
    ['test/openai', true],
    ['test/openrouter', false],
    ['test/openrouter', true],
    ['test/google', false],
    ['test/google', true],
  ])('at %s (stream: %s) is 400 after one call and costs nothing', async (model, stream) => {
    endRests();
    const balance = await world.fetchBalance(account);
    const { status, body } = await world.sendChat(account, 'fault=policy', { model, stream });
    expect([status, body.error.code]).toEqual([400, 'content_policy_violation']);
    expect(body.error.message).toMatch(/flagged|content policy of the provider \(PROHIBITED_CONTENT\)/);
    expect(await listAttempts()).toHaveLength(1);
    expect(await world.fetchBalance(account)).toBe(balance);
  });

  test.each([
    ['openai', '/v1/chat/completions', false],
    ['openai', '/v1/chat/completions', true],
    ['openai', '/v1/responses', false],
    ['openai', '/v1/responses', true],
    ['openai', '/v1/messages', false],
    ['google', '/v1/chat/completions', false],
    ['google', '/v1/chat/completions', true],
    ['google', '/v1/responses', false],
    ['google', '/v1/responses', true],
    ['google', '/v1/messages', false],
  ])(
    'that fails a response of %s is 400 after one call, and what was counted is charged (%s, stream: %s)',
    async (upstream, route, stream) => {
      endRests();
      const content = '[[sandbox fault=policy_billed]]';
      const body = { model: upstream === 'openai' ? 'test/responses' : 'test/google', stream, max_tokens: 100 };
      const messages = [{ role: 'user', content }];
      const request = route === '/v1/responses' ? { model: body.model, stream, input: content } : { ...body, messages };
      const answer = await world.post(route, request, account);
      expect(answer.status).toBe(400);
      expect(answer.text).toMatch(/flagged by the safety system|PROHIBITED_CONTENT/);
      const { type, data } = await findLastHoldEnd();
      expect([type, data]).toEqual([
        'HoldSettled',
        expect.objectContaining({ charge: expect.objectContaining({ errorCode: 'content_policy_violation' }) }),
      ]);
      const { charge } = data as unknown as {
        charge: { attempts: object[]; items: { usage: { input: number }; estimated: boolean }[] };
      };
      expect(charge.attempts).toHaveLength(1);
      expect(charge.items).toMatchObject([{ estimated: false, usage: { input: expect.any(Number) } }]);
      expect(charge.items[0]?.usage).not.toHaveProperty('output');
    },
  );
});
