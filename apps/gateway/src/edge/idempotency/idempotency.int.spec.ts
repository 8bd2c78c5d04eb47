/** A request with an Idempotency-Key is charged at most once, however often it is sent within a day. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI, { APIError } from 'openai';
import { MAX_SAVED_BYTES } from '#application';
import { extendDelay, extendTimeouts, KeyedRequests, sampleCases, sampleSize, type TestResponse } from '#testing';

const GPT = 'openai/gpt-5-mini';
const HOUR_MS = 3_600_000;

let requests: KeyedRequests;
beforeAll(async () => {
  requests = await KeyedRequests.open();
});
beforeEach(() => requests.reset());
afterAll(() => requests.close());

const ask: KeyedRequests['send'] = (...asked) => requests.send(...asked);
const same = ({ status, text, headers }: TestResponse) => ({
  status,
  text,
  type: headers.get('content-type'),
  ids: [headers.get('x-request-id'), headers.get('x-generation-id')],
});
const replayed = ({ headers }: TestResponse) => headers.get('idempotent-replayed');
const refused = ({ status, body }: TestResponse) => [status, body.error.type];
const REUSED = [409, 'idempotency_key_reused'];
const IN_PROGRESS = [409, 'idempotency_in_progress'];
const LOST = [409, 'idempotency_answer_lost'];

async function chargedOnce(): Promise<void> {
  expect(await requests.getEventTypes()).toEqual(['FundsHeld', 'HoldSettled']);
  expect(await requests.countBilledCalls()).toBe(1);
}

/** Another key of the account. */
async function otherKey() {
  const owner = { 'x-credit-id': requests.account.creditId };
  const { data } = (await requests.world.send('POST', '/keys', { headers: owner, body: { name: 'other' } })).body;
  const revoke = () => requests.world.send('DELETE', `/keys/${data._id}`, { headers: owner });
  return { headers: { authorization: `Bearer ${data.api_key}` }, revoke };
}

const chat = (directive: string, more: object) => ({
  model: GPT,
  messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
  ...more,
});
const response = (directive: string, more: object) => ({ model: GPT, input: `[[sandbox ${directive}]]`, ...more });

const REPEATED = [
  ['a chat', '/chat/completions', chat, { stream: false }],
  ['a streamed chat', '/chat/completions', chat, { stream: true }],
  ['a streamed response', '/responses', response, { stream: true }],
  ['a response', '/responses', response, { stream: false }],
] as const;

describe.each(sampleCases(REPEATED, 2))('repeating %s', (_, path, bodyOf, more) => {
  const send = (directive: string, sent: { api?: string; headers?: Record<string, string>; route?: string } = {}) =>
    ask('', { route: `/v1${path}`, body: bodyOf(directive, more), ...sent });

  test('returns the same response, charges once and does not call the provider again', async () => {
    const first = await send('tokens=8');
    const second = await send('tokens=8');
    expect(first.status).toBe(200);
    expect(same(second)).toEqual(same(first));
    expect([replayed(first), replayed(second)]).toEqual([null, 'true']);
    await chargedOnce();
  });

  test('returns the response from another gateway, to another key of the account, and at the other path', async () => {
    const first = await send('tokens=3');
    const { headers } = await otherKey();
    expect(same(await send('tokens=3', { headers, api: requests.apis[1], route: path }))).toEqual(same(first));
    expect(await requests.countBilledCalls()).toBe(1);
  });

  test('is rejected while the first request is running, on both gateways, with the time to wait', async () => {
    const slow = 'tokens=3 latency=800';
    const generation = extendDelay(800);
    const first = send(slow);
    await requests.waitForHold();
    for (const api of requests.apis) {
      const second = await send(slow, { api });
      expect(refused(second)).toEqual(IN_PROGRESS);
      expect([second.headers.get('retry-after'), second.headers.get('x-should-retry')]).toEqual(['2', null]);
    }
    generation.end();
    expect(same(await first)).toEqual(same(await send(slow)));
    await chargedOnce();
  });

  test('charges one of many concurrent requests to two gateways; the others get its response or 409', async () => {
    const count = sampleSize(20, 10);
    const answers = await Promise.all(
      Array.from({ length: count }, (_, i) => send('tokens=3 latency=100', { api: requests.apis[i % 2] ?? '' })),
    );
    const served = answers.filter(({ status }) => status === 200);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(count - served.length);
    expect(served.filter((each) => replayed(each) === null)).toHaveLength(1);
    expect(new Set(served.map(({ text }) => text)).size).toBe(1);
    await chargedOnce();
  });

  test('serves the request again if it cost nothing because nothing was delivered', async () => {
    const directive = `id=${requests.key} fault=refuse fault_times=3 tokens=3`;
    expect((await send(directive)).status).toBe(503);
    expect(await requests.listClaims()).toEqual([]);
    const retry = await send(directive);
    expect([retry.status, replayed(retry)]).toEqual([200, null]);
    expect(await requests.getEventTypes()).toEqual(['FundsHeld', 'HoldReleased', 'FundsHeld', 'HoldSettled']);
  });
});

describe('a stream', () => {
  const stream = { extra: { stream: true } };
  const CUT = { error: { code: 'upstream_error' } };
  const GONE = { error: { code: 'client_disconnected' } };

  test('that was interrupted and charged is replayed with the same text and ids, and is interrupted again', async () => {
    const first = await ask('tokens=8 fault=cut', stream);
    expect(first.events.at(-1)).toMatchObject(CUT);
    const second = await ask('tokens=8 fault=cut', stream);
    expect(same(second)).toEqual(same(first));
    expect([first.isComplete, second.isComplete, replayed(second)]).toEqual([false, false, 'true']);
    await chargedOnce();
  });

  test('that was interrupted before its first token is served again', async () => {
    const directive = `id=${requests.key} fault=cut fault_times=1 tokens=1`;
    expect((await ask(directive, stream)).events.at(-1)).toHaveProperty('error');
    const retry = await ask(directive, stream);
    expect([retry.events.at(-2).usage.completion_tokens, replayed(retry)]).toEqual([1, null]);
  });

  test.each([
    ['in the middle is replayed in full', 'tokens=8 chunk_delay=40', '"coin ', undefined],
    ['at once is replayed in full', 'tokens=8 latency=150', '', undefined],
    ['and that takes too long to drain is replayed, ending with an error', 'tokens=640 chunk_delay=30', '"coin ', GONE],
  ])('whose client disconnected %s', async (_, directive, enough, third) => {
    const drain = extendTimeouts(requests.world.foundation.settings.drainTimeoutMs);
    await requests.sendAndDisconnect(directive, enough);
    await drain.started;
    if (third === GONE) drain.end();
    await requests.world.waitUntil(async () => (await ask(directive, stream)).status === 200);
    drain.end();
    const { events, text, isComplete } = await ask(directive, stream);
    expect(text).toContain('"coin ');
    expect(isComplete).toBe(third !== GONE);
    if (third === GONE) expect(events.at(-1)).toMatchObject(GONE);
    else expect(events.slice(-2)).toMatchObject([{ choices: [], usage: { completion_tokens: 8 } }, '[DONE]']);
    await requests.world.waitUntil(async () => (await requests.countBilledCalls()) === 1); // completed by the provider
    await chargedOnce();
  });

  test('of a response whose client disconnected is replayed in full, and can be read by its id', async () => {
    const sent = { route: '/v1/responses', body: response('tokens=8 chunk_delay=40', { stream: true }) };
    await requests.sendAndDisconnect('', 'coin ', sent);
    await requests.world.waitUntil(async () => (await ask('', sent)).status === 200);
    const { text } = await ask('', sent);
    expect(text).toMatch(/event: response\.completed\n.*\n\ndata: \[DONE\]\n\n$/);
    await chargedOnce();
    const [, id] = /"id":"(resp[^"]+)"/.exec(text) ?? [];
    expect((await requests.world.get(`/v1/responses/${id}`, requests.account)).status).toBe(200);
  });

  test('whose client disconnected is saved by a gateway that shuts down', async () => {
    const gateway = await requests.world.startGateway({ shutdownTimeoutMs: 600_000 });
    await requests.sendAndDisconnect('tokens=8 chunk_delay=40', '"coin ', { api: gateway.api });
    await gateway.close();
    const retry = await ask('tokens=8 chunk_delay=40', stream);
    expect([retry.status, replayed(retry)]).toEqual([200, 'true']);
    await chargedOnce();
  });
});

describe('an idempotency key', () => {
  test.each([
    ['another body', 'tokens=4', {}],
    ['another field', 'tokens=3', { extra: { stream: true } }],
    ['another path', '', { route: '/v1/responses', body: response('tokens=3', {}) }],
  ])('that is reused with %s is rejected permanently and costs nothing', async (_, directive, more) => {
    await ask('tokens=3');
    const second = await ask(directive, more);
    expect(refused(second)).toEqual(REUSED);
    expect(second.body.message).toBe('This Idempotency-Key was used with another request');
    expect([second.headers.get('retry-after'), second.headers.get('x-should-retry')]).toEqual([null, 'false']);
    await chargedOnce();
  });

  test('is separate for each account', async () => {
    const first = await ask();
    const other = await requests.world.createAccount(1.05);
    const second = await ask('tokens=3', { headers: { authorization: `Bearer ${other.apiKey}` } });
    expect([second.status, replayed(second)]).toEqual([200, null]);
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect(await requests.countBilledCalls()).toBe(2);
  });

  test.each([
    ['empty', '', 400],
    ['of 256 characters', 'k'.repeat(256), 400],
    ['with a tab in it', 'a\tb', 400],
    ['with a letter beyond ASCII', 'schl\u00fcssel', 400],
    ['of one character', '!', 200],
    ['of 255 characters with spaces', `k ${'~'.repeat(253)}`, 200],
  ])('is accepted with 1 to 255 printable ASCII characters, else rejected with 400: %s', async (_, key, status) => {
    const headers = { 'idempotency-key': key };
    const [first, second] = [await ask('tokens=3', { headers }), await ask('tokens=3', { headers })];
    expect(first.status).toBe(status);
    if (status === 200) expect(same(second)).toEqual(same(first));
    else expect([first.body.error.param, await requests.getEventTypes()]).toEqual(['Idempotency-Key', []]);
  });

  test('can be used again after its request was rejected', async () => {
    const poor = await requests.world.createAccount();
    const headers = { authorization: `Bearer ${poor.apiKey}` };
    expect((await ask('tokens=3', { headers })).status).toBe(402);
    expect((await ask('tokens=3', { extra: { model: 'nope' } })).status).toBe(404);
    expect((await ask('tokens=3', { extra: { messages: [] } })).status).toBe(400);
    await requests.world.credit(poor, 1.05);
    expect((await ask('tokens=3', { headers })).status).toBe(200);
    expect((await ask('tokens=3')).status).toBe(200);
  });

  test('of a credit id without an account gets 401, and is not stored for that credit id', async () => {
    const nobody = randomUUID();
    const byCreditId = await requests.world.startGateway({ creditIdInference: true });
    const headers = { 'idempotency-key': requests.key, 'x-credit-id': nobody };
    const sent = { body: chat('tokens=3', {}), headers, api: byCreditId.api };
    expect((await requests.world.send('POST', '/v1/chat/completions', sent)).status).toBe(401);
    const sql = 'select from gateway.answers where payer_id = $1';
    expect((await requests.database.query(sql, [nobody])).rowCount).toBe(0);
    await byCreditId.close();
  });

  test('replays nothing to a revoked API key', async () => {
    const { headers, revoke } = await otherKey();
    expect((await ask('tokens=3', { headers })).status).toBe(200);
    await revoke();
    expect((await ask('tokens=3', { headers })).status).toBe(401);
    expect(replayed(await ask('tokens=3'))).toBe('true');
  });

  test.each([
    ['a key', '/keys', { name: 'once' }, 'KeyCreated'],
    ['a top-up', '/topup/create/btc-lightning', { amount: 5, currency: 'USD' }, 'InvoiceIssued'],
  ])('creates %s once and saves the response encrypted', async (_, route, body, type) => {
    const own = { 'x-credit-id': requests.account.creditId, 'idempotency-key': requests.key };
    const create = (more: object = {}) =>
      requests.world.send('POST', route, { headers: own, body: { ...body, ...more } });
    const count = async () => (await requests.world.listEvents()).filter((fact) => fact.type === type).length;
    const before = await count();
    const [first, again] = [await create(), await create()];
    expect([first.status, replayed(first), again.status, replayed(again)]).toEqual([201, null, 201, 'true']);
    expect(again.body).toEqual(first.body);
    expect(await count()).toBe(before + 1);
    expect((await create({ more: 1 })).body.error.type).toBe('idempotency_key_reused');
    const [row] = await requests.listClaims();
    expect(row.answer.toString('latin1')).not.toMatch(/sk-|lnbc|once/);
  });

  test('can be used again after a creation was rejected', async () => {
    const own = { 'x-credit-id': requests.account.creditId, 'idempotency-key': requests.key };
    const create = (name: string) => requests.world.send('POST', '/keys', { headers: own, body: { name } });
    expect((await create('Default')).status).toBe(409);
    expect((await create('mine')).status).toBe(201);
  });

  test('is optional: a request without one stores no response', async () => {
    expect((await requests.world.sendChat(requests.account)).status).toBe(200);
    expect(await requests.listClaims()).toEqual([]);
  });
});

describe('a saved response', () => {
  test('is stored for a day; then its key can be used again', async () => {
    const first = await ask();
    const [{ expires_at }] = await requests.listClaims();
    expect(expires_at.getTime() - Date.now()).toBeGreaterThan(23.9 * HOUR_MS);
    expect(expires_at.getTime() - Date.now()).toBeLessThanOrEqual(24 * HOUR_MS);
    await requests.updateClaims('expires_at = now()');
    const second = await ask('tokens=4');
    expect([second.status, replayed(second)]).toEqual([200, null]);
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect(same(await ask('tokens=4'))).toEqual(same(second));
    expect(await requests.countBilledCalls()).toBe(2);
  });

  test('is not readable in the database, and neither is its key', async () => {
    await ask('text="a private matter"');
    const [row] = await requests.listClaims();
    const text = JSON.stringify(row) + row.answer.toString('latin1');
    for (const secret of ['private matter', 'choices', requests.key]) expect(text).not.toContain(secret);
  });

  test('that is too large is delivered, but its request is not served again', async () => {
    const more = { model: 'countinghouse/flat', n: 100, stream: true };
    const directive = `text="a${' '.repeat(90_000)}b" chunks=1`; // few tokens, and one chunk for each choice
    const first = await ask(directive, { extra: more });
    expect(first.events.at(-1)).toBe('[DONE]');
    expect(first.text.length).toBeGreaterThan(MAX_SAVED_BYTES);
    const second = await ask(directive, { extra: more });
    expect(refused(second)).toEqual(LOST);
    expect(second.headers.get('x-should-retry')).toBe('false');
    await chargedOnce();
  });

  test('that cannot be stored is still delivered', async () => {
    await requests.withFullDisk('answer', async () => expect((await ask()).status).toBe(200));
    expect(refused(await ask())).toEqual(IN_PROGRESS);
    await requests.updateClaims('leased_until = now()');
    expect(refused(await ask())).toEqual(LOST);
    await chargedOnce();
  });
});

/** The client has the option `idempotencyKey`, but the name of the header depends on the service. */
class Client extends OpenAI {
  protected override idempotencyHeader = 'Idempotency-Key';
}

describe("OpenAI's client", () => {
  const clientOf = () => new Client({ apiKey: requests.account.apiKey, baseURL: `${requests.world.api}/v1` });
  const hello = { model: GPT, messages: [{ role: 'user' as const, content: '[[sandbox tokens=3]]' }] };
  const options = () => ({ idempotencyKey: requests.key });

  test('gets the same completion for the same idempotencyKey', async () => {
    const create = () => clientOf().chat.completions.create(hello, options()).withResponse();
    const [first, second] = [await create(), await create()];
    expect(second.data).toEqual(first.data);
    expect(second.request_id).toBe(first.request_id);
    await chargedOnce();
  });

  test('reads the same content and usage from a repeated stream', async () => {
    const params = { ...hello, stream_options: { include_usage: true } };
    for (let i = 0; i < 2; i++) {
      const stream = clientOf().chat.completions.stream(params, options());
      expect(await stream.finalContent()).toBe('every coin that');
      expect((await stream.totalUsage()).total_tokens).toBe(18);
    }
    await chargedOnce();
  });

  test('waits for a request in progress and gets its response', async () => {
    const messages = [{ role: 'user' as const, content: '[[sandbox tokens=3 latency=300]]' }];
    const create = () => clientOf().chat.completions.create({ ...hello, messages }, options());
    const [first, second] = await Promise.all([create(), create()]);
    expect(second).toEqual(first);
    await chargedOnce();
  });

  test('throws an error for another request with the same idempotencyKey', async () => {
    await clientOf().chat.completions.create(hello, options());
    const error = await clientOf()
      .chat.completions.create({ ...hello, n: 2 }, options())
      .catch((refusal) => refusal);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 409, type: 'idempotency_key_reused' });
  });
});
