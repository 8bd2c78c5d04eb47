import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { extendDelay, extendTimeouts, type TestAccount, type TestResponse, TestWorld, timeOut } from '#testing';

/** No other timeouts last as long. */
const IDLE_MS = 59_000;
const COMMENT_MS = 14_000;

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open({
    UPSTREAM_IDLE_TIMEOUT_MS: String(IDLE_MS),
    STREAM_FIRST_COMMENT_MS: String(COMMENT_MS),
  });
});
afterAll(() => world.close());

interface Exchange {
  readonly answer: TestResponse;
  // biome-ignore lint/suspicious/noExplicitAny: events of any shape
  readonly facts: readonly { readonly type: string; readonly data: any }[];
  // biome-ignore lint/suspicious/noExplicitAny: a record of the history
  readonly record: any;
  readonly spent: string;
}

/** Sends one request of a new account. Returns its response, the events after its hold, its record and its cost. */
async function exchange(directive: string, more: object = {}): Promise<Exchange> {
  const account = await world.createAccount(1.05);
  const answer = await world.sendChat(account, directive, more);
  const facts = await world.listEvents(account);
  const [record] = (await world.get('/queries/history', account)).body.data;
  const held = facts.findIndex(({ type }) => type === 'FundsHeld');
  const balance = await spentBy(account);
  return { answer, facts: facts.slice(held + 1), record, spent: balance };
}

async function spentBy(account: TestAccount): Promise<string> {
  const { balance, held_usd } = (await world.post('/credits/balance', undefined, account)).body;
  expect(held_usd).toBe(0);
  return (1.05 - balance).toFixed(12);
}

const NOTHING = '0.000000000000';
const types = ({ facts }: Exchange) => facts.map(({ type }) => type);
const attempts = ({ facts }: Exchange) =>
  facts[0]?.data.attempts.map(({ outcome, status }: { outcome: string; status?: number }) => [outcome, status]);

const BOTH = [{ stream: false }, { stream: true }] as const;

describe('a provider that delivers nothing', () => {
  test.each([
    {
      fault: '400',
      status: 400,
      type: 'invalid_request_error',
      code: 'invalid_request',
      tries: [['invalid_request', 400]],
    },
    {
      fault: '429',
      status: 429,
      retryAfter: '1',
      type: 'rate_limit_error',
      code: 'rate_limited',
      tries: Array(3).fill(['rate_limited', 429]),
    },
    {
      fault: '500',
      status: 502,
      retryAfter: '2',
      type: 'upstream_error',
      code: 'upstream_error',
      tries: Array(3).fill(['upstream_error', 500]),
    },
    { fault: 'timeout', status: 504, type: 'timeout', code: 'timeout', tries: [['timeout', undefined]] },
    {
      fault: 'refuse',
      status: 503,
      retryAfter: '2',
      type: 'upstream_unavailable',
      code: 'upstream_unavailable',
      tries: Array(3).fill(['upstream_unavailable', undefined]),
    },
  ])(
    'leads for fault $fault to status $status without a charge, non-streaming and streamed',
    async ({ fault, status, retryAfter = null, type, code, tries }) => {
      const ask = () => Promise.all(BOTH.map((stream) => exchange(`fault=${fault}`, stream)));
      for (const exchanged of await (fault === 'timeout' ? timeOut(world, ask, BOTH.length) : ask())) {
        const { answer, facts, record } = exchanged;
        expect(answer.status).toBe(status);
        expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
        expect(answer.headers.get('retry-after')).toBe(retryAfter);
        expect(answer.body).toMatchObject({ status: 'error', statusCode: status, error: { type } });
        expect(types(exchanged)).toEqual(['HoldReleased']);
        // The provider's message may quote the request, so only the caller receives it; the event has a fixed text.
        const reason = code === 'invalid_request' ? 'The provider rejected the request' : answer.body.message;
        expect(facts[0]?.data).toMatchObject({ errorCode: code, reason });
        expect(attempts(exchanged)).toEqual(tries);
        expect(record).toMatchObject({ price_in_usd: 0, error_code: code, isEstimated: false });
        expect(exchanged.spent).toBe(NOTHING);
      }
    },
  );

  test('is called again, and the customer is charged once after the provider has recovered', async () => {
    for (const stream of BOTH) {
      const exchanged = await exchange(`id="again ${stream.stream}" fault=500 fault_times=2 tokens=3`, stream);
      expect(exchanged.answer.status).toBe(200);
      expect(types(exchanged)).toEqual(['HoldSettled']);
      const [settled] = exchanged.facts;
      const outcomes = settled?.data.charge.attempts.map(({ outcome }: { outcome: string }) => outcome);
      expect(outcomes).toEqual(['upstream_error', 'upstream_error', 'ok']);
      expect(exchanged.record).toMatchObject({ error_code: null, output_count: 3 });
      expect(exchanged.spent).toBe((Number(settled?.data.charged) / 1e12).toFixed(12));
    }
  });

  test('is not called a fourth time after three failures', async () => {
    expect((await exchange('id=four fault=refuse fault_times=3')).answer.status).toBe(503);
  });
});

describe('a non-streaming response', () => {
  test('costs nothing and is not requested again if it ends early; the operator absorbs an estimated cost', async () => {
    const exchanged = await exchange('id=cut fault=cut fault_times=1 tokens=40');
    expect(exchanged.answer.status).toBe(502);
    expect(types(exchanged)).toEqual(['HoldReleased', 'ChargeAbsorbed']);
    expect(attempts(exchanged)).toEqual([['upstream_error', undefined]]);
    const { charge } = exchanged.facts[1]?.data ?? {};
    expect(charge).toMatchObject({ items: [{ estimated: true, provider: 'openai' }], errorCode: 'upstream_error' });
    expect(Number(charge.cost)).toBeGreaterThan(0);
    expect(exchanged.record).toMatchObject({ price_in_usd: 0, error_code: 'upstream_error' });
    expect(exchanged.spent).toBe(NOTHING);
  });

  test('is an error without a charge if it is not a chat completion', async () => {
    const exchanged = await exchange('fault=malformed');
    expect([exchanged.answer.status, exchanged.answer.body.error.type]).toEqual([502, 'upstream_error']);
    expect(types(exchanged)).toEqual(['HoldReleased', 'ChargeAbsorbed']);
    expect(attempts(exchanged)).toEqual([['upstream_error', undefined]]);
    expect(exchanged.record).toMatchObject({ price_in_usd: 0, error_code: 'upstream_error' });
    expect(exchanged.spent).toBe(NOTHING);
  });
});

describe('a stream', () => {
  test('has an error chunk if it ends early, and what was delivered is charged as an estimate', async () => {
    const exchanged = await exchange('fault=cut tokens=8', { stream: true });
    const { events, status, headers, isComplete } = exchanged.answer;
    expect([status, isComplete]).toEqual([200, false]);
    const text = events.map((each) => each.choices?.[0]?.delta.content ?? '').join('');
    expect(text).toBe('every coin that comes ');
    expect(Object.keys(events.at(-1))[0]).toBe('error'); // where some clients expect it
    expect(events.slice(-2)).toEqual([
      expect.objectContaining({ choices: [expect.objectContaining({ finish_reason: null })] }),
      {
        id: headers.get('x-generation-id'),
        object: 'chat.completion.chunk',
        created: expect.any(Number),
        model: 'openai/gpt-5-mini',
        error: expect.objectContaining({
          code: 'upstream_error',
          message: 'The provider ended the response early',
          metadata: { error_type: 'provider_unavailable' },
        }),
        choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
        usage: expect.objectContaining({ cost: exchanged.record.price_in_usd }),
      },
    ]);
    expect(types(exchanged)).toEqual(['HoldSettled']);
    expect(exchanged.facts[0]?.data.charge).toMatchObject({
      items: [{ estimated: true }],
      errorCode: 'upstream_error',
    });
    expect(exchanged.record).toMatchObject({ error_code: 'upstream_error', isEstimated: true });
    expect(exchanged.record.output_count).toBeGreaterThanOrEqual(4);
    expect(exchanged.record.output_count).toBeLessThanOrEqual(5);
    expect(exchanged.spent).toBe(exchanged.record.price_in_usd.toFixed(12));
  });

  test.each(['malformed', 'cut'])(
    'costs nothing if it ends before its first token (%s), and the operator absorbs the cost of the input',
    async (fault) => {
      const exchanged = await exchange(`id="early ${fault}" fault=${fault} fault_times=1 tokens=1`, { stream: true });
      expect(exchanged.answer.status).toBe(200);
      expect(exchanged.answer.events[0].choices[0].delta).toMatchObject({ role: 'assistant', content: '' });
      expect(exchanged.answer.events.at(-1)).toMatchObject({
        error: { code: 'upstream_error' },
        choices: [{ finish_reason: 'error' }],
        usage: { total_tokens: 0, cost: 0 },
      });
      expect(types(exchanged)).toEqual(['HoldReleased', 'ChargeAbsorbed']);
      const [item] = exchanged.facts[1]?.data.charge.items ?? [];
      expect(item).toMatchObject({ estimated: true, usage: { input: expect.any(Number) } });
      expect(item.usage.output).toBeUndefined();
      expect(exchanged.record).toMatchObject({ price_in_usd: 0, error_code: 'upstream_error' });
      expect(exchanged.spent).toBe(NOTHING);
    },
  );

  test('ends with a timeout if it becomes idle, and is charged for what was delivered', async () => {
    const idle = extendTimeouts(IDLE_MS);
    const exchanging = exchange('tokens=2 chunk_delay=60000', { stream: true });
    await idle.started;
    idle.end();
    const exchanged = await exchanging;
    expect(exchanged.answer.events.at(-1)).toMatchObject({ error: { code: 'timeout', type: 'timeout' } });
    expect(types(exchanged)).toEqual(['HoldSettled']);
    expect(exchanged.facts[0]?.data.charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'timeout' });
    expect(exchanged.record).toMatchObject({ error_code: 'timeout', isEstimated: true });
    expect(exchanged.record.price_in_usd).toBeGreaterThan(0);
  });

  test.each([
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
    ['/v1/completions', { prompt: 'Hi' }],
    ['/v1/responses', { input: 'Hi' }],
    ['/v1/messages', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 8 }],
  ])('is not sent again to a client that reconnects by itself: %s', async (route, fields) => {
    const account = await world.createAccount(1.05);
    const before = (await world.listEvents(account)).length;
    const headers = { authorization: `Bearer ${account.apiKey}`, 'last-event-id': '' };
    const body = { model: 'openai/gpt-5-mini', stream: true, ...fields };
    const { status, text } = await world.send('POST', route, { body, headers });
    expect([status, text]).toEqual([400, expect.stringContaining('without Last-Event-ID')]);
    expect(await world.listEvents(account)).toHaveLength(before);
  });

  test('may wait longer for its first chunk than the idle timeout between chunks', async () => {
    const LATENCY_MS = 1_500;
    const idle = extendTimeouts(IDLE_MS);
    const generation = extendDelay(LATENCY_MS);
    const exchanging = exchange(`tokens=3 latency=${LATENCY_MS}`, { stream: true });
    await generation.started;
    idle.end(); // would end the response if the timeout had started
    generation.end();
    const exchanged = await exchanging;
    expect(exchanged.answer.events).toHaveLength(7);
    expect(exchanged.record).toMatchObject({ error_code: null, output_count: 3 });
  });

  test('is complete if its pauses are shorter than the idle timeout', async () => {
    const exchanged = await exchange('tokens=4 chunk_delay=20', { stream: true });
    expect(exchanged.answer.events).toHaveLength(8);
    expect(exchanged.record).toMatchObject({ error_code: null, output_count: 4, isEstimated: false });
  });
});

describe.each(BOTH)('usage (%j)', (stream) => {
  const usage = ({ body, events }: TestResponse) => (body ?? events.at(-2)).usage;

  test('is counted and marked as an estimate if the provider does not report it', async () => {
    const exchanged = await exchange('fault=no_usage tokens=8', stream);
    expect(types(exchanged)).toEqual(['HoldSettled']);
    expect(exchanged.facts[0]?.data.charge).toMatchObject({ items: [{ estimated: true, usage: { output: 8 } }] });
    expect(exchanged.facts[0]?.data.charge.errorCode).toBeUndefined();
    expect(usage(exchanged.answer).cost).toBe(exchanged.record.price_in_usd);
    expect(exchanged.record).toMatchObject({ error_code: null, isEstimated: true, output_count: 8 });
    expect(exchanged.spent).toBe(exchanged.record.price_in_usd.toFixed(12));
  });

  test('is counted and marked as an estimate if the provider reports zero for a text', async () => {
    const exchanged = await exchange('fault=zero tokens=8', stream);
    const [item] = exchanged.facts[0]?.data.charge.items ?? [];
    expect(item).toMatchObject({ estimated: true, usage: { output: 8, input: expect.any(Number) } });
    expect(usage(exchanged.answer)).toMatchObject({ completion_tokens: 8, cost: exchanged.record.price_in_usd });
    expect(exchanged.record).toMatchObject({ error_code: null, isEstimated: true, output_count: 8 });
    expect(exchanged.spent).toBe(exchanged.record.price_in_usd.toFixed(12));
  });

  test('is accepted if the provider reports zero for a response without a text', async () => {
    const exchanged = await exchange('fault=zero tokens=0', stream);
    expect(exchanged.facts[0]).toMatchObject({
      type: 'HoldSettled',
      data: { charged: '0', charge: { items: [{ estimated: false }] } },
    });
    expect(usage(exchanged.answer)).toMatchObject({ prompt_tokens: 0, completion_tokens: 0, cost: 0 });
    expect(exchanged.record).toMatchObject({ price_in_usd: 0, error_code: null, isEstimated: false });
    expect(exchanged.spent).toBe(NOTHING);
  });

  test('costs less for cached input', async () => {
    const exchanged = await exchange('fault=cached tokens=8', stream);
    expect(exchanged.facts[0]?.data.charge.items[0].usage).toMatchObject({ input: 9, cacheRead: 9, output: 8 });
    expect(exchanged.record.price_in_usd).toBe(0.000019491125);
    expect(usage(exchanged.answer)).toMatchObject({ prompt_tokens: 18, prompt_tokens_details: { cached_tokens: 9 } });
  });
});

describe('a stream that ends early during hidden reasoning', () => {
  test.each([
    ['deepseek/deepseek-r1', 'deepinfra', 200, 'cut', 40],
    ['deepseek/deepseek-r1', 'deepinfra', 200, 'error', 40],
    // Anthropic reports only that the model is thinking.
    ['anthropic/claude-haiku-4.5', 'anthropic', 502, 'cut', 0],
    ['anthropic/claude-haiku-4.5', 'anthropic', 502, 'error', 0],
  ])(
    'costs nothing and is not requested again; the operator absorbs its cost: %s at %s, status %i, %s',
    async (model, provider, status, fault, output) => {
      const reasoning = { max_tokens: 2_000, exclude: true };
      const more = { model, stream: true, max_tokens: 4_000, reasoning, provider: { only: [provider] } };
      const exchanged = await exchange(`tokens=41 reasoning=40 chunks=1 fault=${fault} at=${provider}`, more);
      expect(exchanged.answer.status).toBe(status);
      expect(types(exchanged)).toEqual(['HoldReleased', 'ChargeAbsorbed']);
      expect(exchanged.facts[0]?.data.attempts).toHaveLength(1);
      const usage = output > 0 ? { output } : { input: expect.any(Number) };
      expect(exchanged.facts[1]?.data.charge).toMatchObject({ items: [{ provider, estimated: true, usage }] });
      expect(exchanged.spent).toBe(NOTHING);
    },
  );
});

describe('a stream that waits for its first byte', () => {
  const COMMENT = ': COUNTINGHOUSE PROCESSING\n\n';
  const ask = async (directive: string, usd = 1.05) => {
    const account = await world.createAccount(usd);
    const { status, textWithComments: text, isComplete } = await world.sendChat(account, directive, { stream: true });
    const { balance } = (await world.post('/credits/balance', undefined, account)).body;
    return { status, text, isComplete, spent: usd - balance };
  };

  /** Sends a request that times out after its first comment. */
  function timeOutAfterComment<T>(send: () => Promise<T>): Promise<T> {
    let comment: ReturnType<typeof extendTimeouts> | undefined;
    const sendDelayed = () => {
      comment = extendTimeouts(COMMENT_MS);
      return send();
    };
    return timeOut(world, sendDelayed, () => {
      if (world.traffic.openCallCount > 0) comment?.end();
      return world.traffic.openCallCount > 0;
    });
  }

  test('begins with a comment, has the usage, ends with [DONE], and is charged', async () => {
    const LATENCY_MS = 1_500;
    const comment = extendTimeouts(COMMENT_MS);
    const generation = extendDelay(LATENCY_MS);
    const response = ask(`tokens=3 latency=${LATENCY_MS}`);
    await generation.started;
    comment.end();
    generation.end();
    const { status, text, spent } = await response;
    expect([status, text.slice(0, COMMENT.length)]).toEqual([200, COMMENT]);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(text).toContain('"total_tokens"');
    expect(spent).toBeGreaterThan(0);
  });

  test('has an error chunk and no end if it fails after the comment, and costs nothing', async () => {
    const { status, text, isComplete, spent } = await timeOutAfterComment(() => ask('fault=timeout'));
    expect([status, text.slice(0, COMMENT.length)]).toEqual([200, COMMENT]);
    expect(text.slice(COMMENT.length)).toMatch(/^(: .*\n\n)*data: \{"error":\{.*"type":"timeout".*\}\n\n$/);
    expect([isComplete, spent]).toEqual([false, 0]);
  });

  test('has an error status if it fails before the comment or for lack of money', async () => {
    expect((await ask('fault=400')).status).toBe(400);
    expect((await ask('fault=refuse')).status).toBe(503);
    expect((await ask('tokens=3', 0)).status).toBe(402);
  });

  test('has the events of a failed response after the comment in the Responses API', async () => {
    const account = await world.createAccount(1.05);
    const asked = { model: 'openai/gpt-5-mini', input: '[[sandbox fault=timeout]]', stream: true };
    const { status, textWithComments: text } = await timeOutAfterComment(() =>
      world.post('/v1/responses', asked, account),
    );
    expect([status, text.slice(0, COMMENT.length)]).toEqual([200, COMMENT]);
    const types = [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
    expect(types).toEqual(['response.created', 'response.in_progress', 'response.failed']);
  });
});
