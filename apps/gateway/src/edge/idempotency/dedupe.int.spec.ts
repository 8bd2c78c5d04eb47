/** An API key with `dedupe_seconds`: a request that is identical to a running or unread one is the same request. */
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { PostgresIdempotencyStore } from '#connectors';
import { extendDelay, KeyedRequests, type TestAccount, type TestResponse } from '#testing';

/** How long a delivered response is found by requests that wait for it. */
const RETENTION_MS = 10_000;
/** How long a slow response takes, unless a test extends it. No other delay lasts as long. */
const LATENCY_MS = 170;
const SLOW = `tokens=3 latency=${LATENCY_MS}`;

let requests: KeyedRequests;
let key: TestAccount & { readonly id: string };
beforeAll(async () => {
  requests = await KeyedRequests.open();
});
beforeEach(async () => {
  await requests.reset();
  key = await createKey({ dedupe_seconds: 600 });
});
afterAll(() => requests.close());

const manage = (method: string, route: string, body?: object, api = requests.apis[0]) =>
  requests.world.send(method, route, { headers: { 'x-credit-id': requests.account.creditId }, body, api });

async function createKey(fields: object): Promise<typeof key> {
  const { body, text } = await manage('POST', '/keys', { name: `k${Math.random()}`.slice(0, 20), ...fields });
  if (body.data === undefined) throw new Error(text);
  return { creditId: requests.account.creditId, apiKey: body.data.api_key, id: body.data._id };
}

const send = (directive = 'tokens=3', extra: object = {}, { gateway = 0, by = key as TestAccount } = {}) =>
  requests.world.sendChat(by, directive, extra, requests.apis[gateway]);
const isReplay = ({ headers }: TestResponse) => headers.get('idempotent-replayed') === 'true';
const holds = async (type = 'HoldSettled') => (await requests.getEventTypes()).filter((each) => each === type).length;

/** Sends a request whose client disconnects once money is held. */
async function sendAndDisconnect(directive: string, extra: object = {}): Promise<void> {
  const before = await holds('FundsHeld');
  const client = new AbortController();
  const response = fetch(`${requests.apis[0]}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key.apiKey}` },
    body: JSON.stringify({
      model: 'openai/gpt-5-mini',
      messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
      ...extra,
    }),
    signal: client.signal,
  }).catch(() => {});
  await requests.world.waitUntil(async () => (await holds('FundsHeld')) > before);
  client.abort();
  await response;
}

/** Sends a request whose response its client never reads. */
async function sendUnread(directive = SLOW): Promise<string> {
  const generation = extendDelay(LATENCY_MS);
  await sendAndDisconnect(directive);
  generation.end();
  await requests.world.waitUntil(async () => (await requests.listClaims())[0]?.answer != null);
  return directive;
}

describe.each([
  ['a response', {}],
  ['a stream', { stream: true }],
])('of %s', (_, form) => {
  test('a repeat waits for the first request, also on another gateway, and gets its response', async () => {
    const lookups = jest.spyOn(PostgresIdempotencyStore.prototype, 'find');
    const generation = extendDelay(LATENCY_MS);
    const first = send(SLOW, form);
    await requests.world.waitUntil(async () => (await holds('FundsHeld')) === 1);
    const repeats = [send(SLOW, form), send(SLOW, form, { gateway: 1 })];
    await requests.world.waitUntil(async () => lookups.mock.calls.length >= 2);
    generation.end();

    const { text } = await first;
    for (const repeat of await Promise.all(repeats)) {
      expect(repeat).toMatchObject({ status: 200, text, isComplete: true });
      expect(isReplay(repeat)).toBe(true);
    }
    expect([await holds(), await requests.countBilledCalls()]).toEqual([1, 1]);
    lookups.mockRestore();
  });

  test('a repeat of a request whose client has disconnected gets the response, which is charged once', async () => {
    const generation = extendDelay(LATENCY_MS);
    await sendAndDisconnect(SLOW, form);
    const repeat = send(SLOW, form, { gateway: 1 });
    generation.end();

    expect(await repeat).toMatchObject({ status: 200, isComplete: true });
    expect(isReplay(await repeat)).toBe(true);
    expect([await holds(), await requests.countBilledCalls()]).toEqual([1, 1]);
  });

  test('a request is a new one once the response was delivered', async () => {
    const retention = extendDelay(RETENTION_MS);
    const answers = [await send('', form), await send('', form)];
    expect(answers.map(isReplay)).toEqual([false, false]);
    expect([await holds(), await requests.countBilledCalls()]).toEqual([2, 2]);
    expect(await requests.listClaims()).toHaveLength(1);
    retention.end();
    await requests.world.waitUntil(async () => (await requests.listClaims()).length === 0);
  });
});

test('a replay is delivered too, after which an identical request is a new one', async () => {
  const directive = await sendUnread();
  expect(isReplay(await send(directive))).toBe(true);
  expect(isReplay(await send(directive))).toBe(false);
  expect(await holds()).toBe(2);
});

test('another body, key, path or method is another request, and an Idempotency-Key is used instead', async () => {
  const directive = await sendUnread();
  const other = await createKey({ dedupe_seconds: 600 });
  const keyed = { authorization: `Bearer ${key.apiKey}`, 'idempotency-key': 'mine' };
  const body = {
    model: 'openai/gpt-5-mini',
    messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
  };
  const answers = [
    await send(directive, { temperature: 1 }),
    await send(directive, {}, { by: other }),
    await requests.world.post('/v1/responses', { model: body.model, input: body.messages[0]?.content }, key),
    await requests.world.send('POST', '/v1/chat/completions', { body, headers: keyed }),
  ];
  expect(answers.map((each) => [each.status, isReplay(each)])).toEqual(answers.map(() => [200, false]));
  expect(isReplay(await send(directive))).toBe(true);
});

test('a request after the time is a new one, even if the first one is still running', async () => {
  const generation = extendDelay(LATENCY_MS);
  const first = send(SLOW);
  await requests.world.waitUntil(async () => (await requests.listClaims())[0]?.held === true);
  expect((await requests.listClaims())[0].expires_at - Date.now()).toBeLessThan(600_000);
  await requests.updateClaims('expires_at = now()');
  const second = send(SLOW, {}, { gateway: 1 });
  await requests.world.waitUntil(async () => (await holds('FundsHeld')) === 2);
  generation.end();

  const answers = await Promise.all([first, second]);
  expect(answers.map((each) => [each.status, isReplay(each)])).toEqual([
    [200, false],
    [200, false],
  ]);
  expect(await holds()).toBe(2);
});

describe('a gateway that dies', () => {
  test.each([
    ['before it has held money', 'held = false'],
    ['between the charge and saving its response, which was not delivered', 'held = true'],
  ])('%s leaves a request that is served as a new one', async (_, state) => {
    const directive = await sendUnread();
    await requests.updateClaims(`answer = null, leased_until = now(), ${state}`);
    const retry = await send(directive, {}, { gateway: 1 });
    expect([retry.status, isReplay(retry)]).toEqual([200, false]);
    expect(await holds()).toBe(2);
  });

  test('is waited for until its claim has ended', async () => {
    const directive = await sendUnread();
    await requests.updateClaims(`answer = null, held = false, leased_until = now() + interval '1 h'`);
    const retry = send(directive, {}, { gateway: 1 });
    await requests.updateClaims('leased_until = now()');
    expect(await retry).toMatchObject({ status: 200 });
  });
});

test('a stream that breaks while its client reads is delivered: the next request is a new one', async () => {
  const broken = await send('tokens=8 chunks=4 fault=cut', { stream: true });
  expect(broken.isComplete).toBe(false);
  expect(isReplay(await send('tokens=8 chunks=4 fault=cut', { stream: true }))).toBe(false);
});

test('a client that disconnects while it waits for another response does not change that', async () => {
  const directive = await sendUnread();
  await requests.updateClaims(`answer = null, held = false, leased_until = now() + interval '1 h'`);
  const client = new AbortController();
  const waiting = fetch(`${requests.apis[1]}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key.apiKey}` },
    body: JSON.stringify({
      model: 'openai/gpt-5-mini',
      messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
    }),
    signal: client.signal,
  }).catch(() => 'aborted');
  client.abort();
  expect(await waiting).toBe('aborted');
  expect(await requests.listClaims()).toHaveLength(1);
});

describe('the setting', () => {
  test('is off by default: every request is charged, and nothing is stored', async () => {
    const plain = await createKey({});
    const generation = extendDelay(LATENCY_MS);
    const answers = [1, 2].map(() => send(SLOW, {}, { by: plain }));
    await requests.world.waitUntil(async () => (await holds('FundsHeld')) === 2);
    expect(await requests.listClaims()).toEqual([]);
    generation.end();
    expect((await Promise.all(answers)).map(isReplay)).toEqual([false, false]);
    expect((await manage('GET', `/keys/${plain.id}`)).body.data.dedupe_seconds).toBeNull();
  });

  test('applies to the next request on every gateway, and no longer once it is removed', async () => {
    const later = await createKey({});
    for (const gateway of [0, 1]) await send('', {}, { by: later, gateway });
    expect((await manage('PATCH', `/keys/${later.id}`, { dedupe_seconds: 60 })).body.data.dedupe_seconds).toBe(60);
    key = later;
    const directive = await sendUnread();
    expect((await requests.listClaims())[0].expires_at - Date.now()).toBeLessThan(60_000);
    expect(isReplay(await send(directive, {}, { gateway: 1 }))).toBe(true);

    await sendUnread();
    expect((await manage('PATCH', `/keys/${later.id}`, { dedupe_seconds: null })).body.data.dedupe_seconds).toBeNull();
    for (const gateway of [0, 1]) expect(isReplay(await send(directive, {}, { gateway }))).toBe(false);
  });

  test.each([0, -1, 1.5, 3_601, '60', true])('is an integer from 1 to 3600: not %j', async (dedupe_seconds) => {
    for (const [method, route] of [
      ['POST', '/keys'],
      ['PATCH', `/keys/${key.id}`],
    ] as const) {
      const { status, text } = await manage(method, route, { name: 'n', dedupe_seconds });
      expect([status, text]).toEqual([400, expect.stringContaining('dedupe_seconds')]);
    }
  });

  test('is retained with other changes of the key, and listed', async () => {
    await manage('PATCH', `/keys/${key.id}`, { models: ['openai/*'] });
    expect((await manage('GET', `/keys/${key.id}`)).body.data).toMatchObject({
      dedupe_seconds: 600,
      models: ['openai/*'],
    });
    await manage('PATCH', `/keys/${key.id}`, { models: null });
    const { body } = await manage('GET', '/keys');
    expect(body.data.at(-1)).toMatchObject({ dedupe_seconds: 600, models: null });
  });
});

describe('zero data retention', () => {
  async function findZdrModel(): Promise<string> {
    const { data } = (await requests.world.get('/v1/models')).body;
    return data.find(({ privacyLevel, type }: Record<string, string>) => privacyLevel === 'zdr' && type === 'chat').id;
  }

  test('is rejected with such a key, because the response is stored', async () => {
    const model = await findZdrModel();
    const { status, body } = await send('', { model, max_tokens: 5, provider: { zdr: true } });
    expect([status, body.error.param]).toEqual([400, 'provider.zdr']);
    expect((await send('', { model, max_tokens: 5, provider: { zdr: false } })).status).toBe(200);
    expect(await holds()).toBe(1);
  });

  test('is rejected for a model that the web application always uses so', async () => {
    const id = await findZdrModel();
    const ask = (headers: Record<string, string>) =>
      requests.world.send('POST', '/v1/chat/completions', {
        headers: { authorization: `Bearer ${key.apiKey}`, ...headers },
        body: { model: id, max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] },
      });
    expect((await ask({ 'x-query-source': 'ui' })).status).toBe(400);
    expect((await ask({})).status).toBe(200);
  });
});
