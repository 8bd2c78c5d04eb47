import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI, { APIError } from 'openai';
import pg from 'pg';
import { openStreams } from '#application';
import type { AccountCommand } from '#domain';
import { money } from '#kernel';
import { type Answer, type TestAccount, World } from '#testing';
import { MAX_KEPT_BYTES } from './recording.ts';

const DRAIN_MS = 600;
const GPT = 'openai/gpt-5-mini';

let world: World;
let apis: readonly [string, string];
let database: pg.Client;
beforeAll(async () => {
  world = await World.open({ DISCONNECT_DRAIN_MS: String(DRAIN_MS) });
  apis = [world.api, await world.anotherGateway()];
  database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
});
afterAll(async () => {
  await database.end();
  await world.close();
});

let account: TestAccount;
let key: string;
beforeEach(async () => {
  account = await world.account(1.05);
  key = `retry-${randomUUID()}`;
  await world.send('DELETE', '/bill', { api: world.sandbox });
});

interface Ask {
  readonly more?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly route?: string;
  readonly api?: string;
}

const bodyOf = (directive: string, more: object = {}) => ({
  model: GPT,
  messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
  ...more,
});

/** A request with the key of this test. */
function ask(directive = 'tokens=3', { more, headers, route = '/v1/chat/completions', api }: Ask = {}) {
  const sent = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': key, ...headers };
  return world.send('POST', route, { body: bodyOf(directive, more), headers: sent, ...(api ? { api } : {}) });
}

const same = ({ status, text, headers }: Answer) => ({
  status,
  text,
  type: headers.get('content-type'),
  ids: [headers.get('x-request-id'), headers.get('x-generation-id')],
});
const replayed = ({ headers }: Answer) => headers.get('idempotent-replayed');
const refused = ({ status, body }: Answer) => [status, body.error.type];
const billed = async () => (await world.send('GET', '/bill', { api: world.sandbox })).body.lines;
/** What became of the money since it came. */
const story = async () => (await world.facts(account)).slice(3).map(({ type }) => type);
const rows = async () =>
  (await database.query('select * from gateway.answers where account_id = $1', [account.creditId])).rows;
const change = (set: string, values: readonly unknown[] = []) =>
  database.query(`update gateway.answers set ${set} where account_id = '${account.creditId}'`, [...values]);
const openHold = () => world.until(async () => (await story()).at(-1) === 'FundsHeld');

async function chargedOnce(): Promise<void> {
  expect(await story()).toEqual(['FundsHeld', 'HoldSettled']);
  expect(await billed()).toBe(1);
}

const BOTH = [{ stream: false }, { stream: true }] as const;

describe.each(BOTH)('the same request with the same key (%j)', (more) => {
  test('gets the same answer, is charged once, and is not sent upstream again', async () => {
    const first = await ask('tokens=8', { more });
    const second = await ask('tokens=8', { more });
    expect(first.status).toBe(200);
    expect(same(second)).toEqual(same(first));
    expect([replayed(first), replayed(second)]).toEqual([null, 'true']);
    await chargedOnce();
  });

  test('gets it from another gateway, by another key of the account, and at the other path', async () => {
    const first = await ask('tokens=3', { more });
    const owner = { 'x-credit-id': account.creditId };
    const { body } = await world.send('POST', '/keys', { headers: owner, body: { name: 'second' } });
    const headers = { authorization: `Bearer ${body.data.api_key}` };
    const second = await ask('tokens=3', { more, headers, api: apis[1], route: '/chat/completions' });
    expect(same(second)).toEqual(same(first));
    expect(await billed()).toBe(1);
  });

  test('is refused while it is in progress, on any gateway, and asked to come again', async () => {
    const slow = 'tokens=3 latency=800';
    const first = ask(slow, { more });
    await openHold();
    for (const api of apis) {
      const second = await ask(slow, { more, api });
      expect(refused(second)).toEqual([409, 'idempotency_in_progress']);
      expect([second.headers.get('retry-after'), second.headers.get('x-should-retry')]).toEqual(['2', null]);
    }
    expect(same(await first)).toEqual(same(await ask(slow, { more })));
    await chargedOnce();
  });

  test('is served once of twenty at once over two gateways', async () => {
    const asked = Array.from({ length: 20 }, (_, i) => ask('tokens=3 latency=100', { more, api: apis[i % 2] }));
    const answers = await Promise.all(asked);
    const served = answers.filter(({ status }) => status === 200);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(20 - served.length);
    expect(served.filter((each) => replayed(each) === null)).toHaveLength(1);
    expect(new Set(served.map(({ text }) => text)).size).toBe(1);
    await chargedOnce();
  });

  test('that cost nothing, because nothing was delivered, is served again', async () => {
    const directive = `id=${key} fault=refuse fault_times=3 tokens=3`;
    expect((await ask(directive, { more })).status).toBe(503);
    expect(await rows()).toEqual([]);
    const retry = await ask(directive, { more });
    expect([retry.status, replayed(retry)]).toEqual([200, null]);
    expect(await story()).toEqual(['FundsHeld', 'HoldReleased', 'FundsHeld', 'HoldSettled']);
  });
});

describe('a stream', () => {
  test('that broke off and was charged is replayed as it was', async () => {
    const first = await ask('tokens=8 fault=cut', { more: { stream: true } });
    expect(first.events.at(-3)).toMatchObject({ error: { code: 502 } });
    expect(same(await ask('tokens=8 fault=cut', { more: { stream: true } }))).toEqual(same(first));
    await chargedOnce();
  });

  test('that broke off before its first token cost nothing, and is served again', async () => {
    const directive = `id=${key} fault=cut fault_times=1 tokens=1`;
    expect((await ask(directive, { more: { stream: true } })).events.at(-3)).toHaveProperty('error');
    const retry = await ask(directive, { more: { stream: true } });
    expect([retry.events.at(-2).usage.completion_tokens, replayed(retry)]).toEqual([1, null]);
  });

  test.each([
    ['in the middle', 'tokens=8 chunk_delay=40', '"coin '],
    ['at once', 'tokens=8 latency=150', ''],
  ])('whose client left %s is replayed in full', async (_, directive, enough) => {
    await leave(directive, enough);
    await world.until(async () => (await ask(directive, { more: { stream: true } })).status === 200);
    const { events, text } = await ask(directive, { more: { stream: true } });
    expect(text).toContain('"coin ');
    expect(events.at(-2).usage).toMatchObject({ completion_tokens: 8 });
    expect(events.at(-1)).toBe('[DONE]');
    await chargedOnce();
  });

  test('whose client left is not waited for longer than it takes to drain: what had come is replayed', async () => {
    const directive = 'tokens=64 chunk_delay=30';
    await leave(directive, '"coin ');
    await world.until(async () => (await ask(directive, { more: { stream: true } })).status === 200);
    const { events } = await ask(directive, { more: { stream: true } });
    expect(events.at(-3)).toMatchObject({ error: { code: 499 } });
    expect(events.at(-1)).toBe('[DONE]');
    expect(await story()).toEqual(['FundsHeld', 'HoldSettled']);
    await world.until(async () => (await billed()) === 1); // the provider finishes what nobody reads
  });
});

describe('a response', () => {
  const respond = (body: object) => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': key };
    return world.send('POST', '/v1/responses', { body, headers });
  };
  const input = '[[sandbox tokens=8 chunk_delay=40]]';

  test('is replayed, and its key is no chat\u2019s', async () => {
    const first = await respond({ model: GPT, input });
    expect(first.status).toBe(200);
    expect(same(await respond({ model: GPT, input }))).toEqual(same(first));
    expect(refused(await ask())).toEqual([409, 'idempotency_key_reused']);
    await chargedOnce();
  });

  test('as a stream whose client left is replayed in full, and can be continued', async () => {
    const body = { model: GPT, input, stream: true };
    await leave('', 'coin ', { route: '/v1/responses', body });
    let text = '';
    await world.until(async () => {
      const authorization = `Bearer ${account.apiKey}`;
      const headers = { authorization, 'idempotency-key': key, 'content-type': 'application/json' };
      const sent = { method: 'POST', headers, body: JSON.stringify(body) };
      const response = await fetch(`${world.api}/v1/responses`, sent);
      text = await response.text();
      return response.status === 200;
    });
    expect(text).toMatch(/event: response\.completed\n.*\n\ndata: \[DONE\]\n\n$/);
    await chargedOnce();
    const [, id] = /"id":"(resp[^"]+)"/.exec(text) ?? [];
    expect((await world.get(`/v1/responses/${id}`, account)).status).toBe(200);
  });
});

test('a gateway that ends in order keeps the answers that nobody waits for any more', async () => {
  const gateway = await world.gateway();
  const directive = 'tokens=8 chunk_delay=40';
  await leave(directive, '"coin ', { api: gateway.api });
  await gateway.close();
  const retry = await ask(directive, { more: { stream: true } });
  expect([retry.status, replayed(retry)]).toEqual([200, 'true']);
  await chargedOnce();
});

/** Asks for a stream, and hangs up once `enough` of it has come. */
async function leave(
  directive: string,
  enough: string,
  { api = world.api, route = '/v1/chat/completions', body = bodyOf(directive, { stream: true }) as object } = {},
): Promise<void> {
  const hangUp = new AbortController();
  const response = fetch(`${api}${route}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${account.apiKey}`,
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
    signal: hangUp.signal,
  });
  if (enough === '') await openHold();
  else await readUpTo(enough, await response);
  hangUp.abort();
  await response.catch(() => {});
}

async function readUpTo(enough: string, { body }: Response): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body ?? []) {
    text += decoder.decode(piece);
    if (text.includes(enough)) return;
  }
}

describe('a key', () => {
  test('that came with another body is refused, for good, and costs nothing', async () => {
    await ask('tokens=3');
    const { status, headers, body } = await ask('tokens=4');
    expect(status).toBe(409);
    expect(body).toEqual({
      status: 'error',
      statusCode: 409,
      message: 'This Idempotency-Key was used with another request',
      error: {
        message: 'This Idempotency-Key was used with another request',
        type: 'idempotency_key_reused',
        code: 409,
        param: 'Idempotency-Key',
        metadata: { error_type: 'invalid_request' },
      },
    });
    expect([headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([null, 'false']);
    expect(refused(await ask('tokens=3', { more: { stream: true } }))).toEqual([409, 'idempotency_key_reused']);
    await chargedOnce();
  });

  test('is an account\u2019s own', async () => {
    const first = await ask();
    const other = await world.account(1.05);
    const second = await ask('tokens=3', { headers: { authorization: `Bearer ${other.apiKey}` } });
    expect([second.status, replayed(second)]).toEqual([200, null]);
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect(await billed()).toBe(2);
  });

  test.each([
    ['empty', ''],
    ['of 256 characters', 'k'.repeat(256)],
    ['with a tab in it', 'a\tb'],
    ['with a letter beyond ASCII', 'schl\u00fcssel'],
  ])('%s is refused, and costs nothing', async (_, malformed) => {
    const { status, body } = await ask('tokens=3', { headers: { 'idempotency-key': malformed } });
    expect([status, body.error.param]).toEqual([400, 'Idempotency-Key']);
    expect(await story()).toEqual([]);
  });

  test.each([
    ['of one character', '!'],
    ['of 255 characters with spaces', `k ${'~'.repeat(253)}`],
  ])('%s is taken', async (_, wellFormed) => {
    const headers = { 'idempotency-key': wellFormed };
    expect(same(await ask('tokens=3', { headers }))).toEqual(same(await ask('tokens=3', { headers })));
  });

  test('of a request that is refused is free again', async () => {
    const poor = await world.account();
    const headers = { authorization: `Bearer ${poor.apiKey}` };
    expect((await ask('tokens=3', { headers })).status).toBe(402);
    expect((await ask('tokens=3', { more: { model: 'nope' } })).status).toBe(404);
    expect((await ask('tokens=3', { more: { messages: [] } })).status).toBe(400);
    await world.fund(poor, 1);
    expect((await ask('tokens=3', { headers })).status).toBe(200);
    expect((await ask('tokens=3')).status).toBe(200);
  });

  test('of an account that does not exist is not remembered', async () => {
    const nobody = randomUUID();
    const headers = { 'idempotency-key': key, 'x-credit-id': nobody };
    const body = bodyOf('tokens=3');
    expect((await world.send('POST', '/v1/chat/completions', { body, headers })).status).toBe(401);
    expect((await database.query('select from gateway.answers where account_id = $1', [nobody])).rowCount).toBe(0);
  });

  test('replays nothing to an API key that was revoked', async () => {
    const owner = { 'x-credit-id': account.creditId };
    const { body } = await world.send('POST', '/keys', { headers: owner, body: { name: 'leaked' } });
    const headers = { authorization: `Bearer ${body.data.api_key}` };
    expect((await ask('tokens=3', { headers })).status).toBe(200);
    await world.send('DELETE', `/keys/${body.data._id}`, { headers: owner });
    expect((await ask('tokens=3', { headers })).status).toBe(401);
    expect(replayed(await ask('tokens=3'))).toBe('true');
  });
});

describe('an answer', () => {
  test('is kept for a day, and then the key is as good as new', async () => {
    const first = await ask();
    const [{ expires_at }] = await rows();
    expect(expires_at.getTime() - Date.now()).toBeGreaterThan(23.9 * 3_600_000);
    expect(expires_at.getTime() - Date.now()).toBeLessThanOrEqual(24 * 3_600_000);
    await change('expires_at = now()');
    const second = await ask('tokens=4');
    expect([second.status, replayed(second)]).toEqual([200, null]);
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect(same(await ask('tokens=4'))).toEqual(same(second));
    expect(await billed()).toBe(2);
  });

  test('is not legible in the database, and neither is its key', async () => {
    await ask('text="a private matter"');
    const [row] = await rows();
    const text = JSON.stringify(row) + row.answer.toString('latin1');
    for (const secret of ['private matter', 'choices', key]) expect(text).not.toContain(secret);
  });

  test('that is too large to be kept is delivered, and not served a second time', async () => {
    const more = { model: 'countinghouse/flat', n: 100, stream: true };
    const first = await ask('tokens=500 chunks=500', { more });
    expect(first.events.at(-1)).toBe('[DONE]');
    expect(first.text.length).toBeGreaterThan(MAX_KEPT_BYTES);
    const second = await ask('tokens=500 chunks=500', { more });
    expect(refused(second)).toEqual([409, 'idempotency_answer_lost']);
    expect(second.headers.get('x-should-retry')).toBe('false');
    await chargedOnce();
  });

  test('that cannot be kept is delivered all the same', async () => {
    await database.query(`create function gateway.full() returns trigger language plpgsql as $$ begin
        raise exception 'the disk is full'; end $$;
      create trigger full_disk before update of answer on gateway.answers for each row execute function gateway.full()`);
    try {
      expect((await ask()).status).toBe(200);
    } finally {
      await database.query('drop function gateway.full cascade');
    }
    expect(refused(await ask())).toEqual([409, 'idempotency_in_progress']);
    await change('leased_until = now()');
    expect(refused(await ask())).toEqual([409, 'idempotency_answer_lost']);
    await chargedOnce();
  });
});

/** As the gateway leaves it that dies behind the charge, and before the answer is kept. */
const dieBeforeKeeping = () => change('answer = null, leased_until = now()');

/** The account, as one more gateway has it. */
function anotherWriter() {
  const { store, runtime } = world.foundation;
  const none = { load: async () => undefined, save: async () => {} };
  const { accounts } = openStreams(store, none, runtime);
  return (command: AccountCommand) => accounts.run(account.creditId, command);
}

function hold(holdId: string, expiresIn = 600_000): AccountCommand {
  const at = new Date().toISOString();
  const query = { model: GPT, type: 'chat_completion', source: 'api', online: false, free: false } as const;
  const amount = { atLeast: money.usd('0.1'), atMost: money.usd('0.1') };
  const expiresAt = new Date(Date.now() + expiresIn).toISOString();
  return { type: 'HoldFunds', data: { holdId, keyId: null, query, ...amount, expiresAt, at } };
}

/** As the gateway leaves it that dies before it held anything for `ask()`; copied from another account's claim of it. */
async function dieClaiming(): Promise<void> {
  const other = await world.account(1.05);
  await ask('tokens=3', { headers: { authorization: `Bearer ${other.apiKey}` } });
  await world.send('DELETE', '/bill', { api: world.sandbox });
  await database.query(
    `insert into gateway.answers
       (account_id, key, request, request_id, revision, owner, leased_until, expires_at, held)
     select $1, key, request, gen_random_uuid(), 2, gen_random_uuid(), now() + interval '10 s', expires_at, false
       from gateway.answers where account_id = $2`,
    [account.creditId, other.creditId],
  );
}
const lapse = () => change('leased_until = now()');

/** As the gateway leaves it that dies with a hold. */
async function dieHolding(expiresIn: number): Promise<string> {
  const holdId = randomUUID();
  await anotherWriter()(hold(holdId, expiresIn));
  await change('answer = null, leased_until = now(), request_id = $1', [holdId]);
  return holdId;
}

describe('a gateway that dies', () => {
  test('between the charge and the answer\u2019s record does not let the request be charged twice', async () => {
    await ask();
    await dieBeforeKeeping();
    for (const api of apis) {
      const { status, body, headers } = await ask('tokens=3', { api });
      expect([status, body.error.type]).toEqual([409, 'idempotency_answer_lost']);
      expect(body.message).toContain('was charged, but its answer was lost');
      expect(headers.get('x-should-retry')).toBe('false');
    }
    await chargedOnce();
  });

  test('is remembered by the facts, also behind more holds than an account has in mind', async () => {
    await ask();
    const run = anotherWriter();
    const why = { errorCode: 'upstream_error', reason: '', attempts: [], at: new Date().toISOString() };
    const others = Array.from({ length: 1_100 }, (_, i) => `other ${i}`).flatMap((holdId) => [
      run(hold(holdId)),
      run({ type: 'ReleaseHold', data: { holdId, ...why } }),
    ]);
    await Promise.all(others);
    await dieBeforeKeeping();
    expect(refused(await ask())).toEqual([409, 'idempotency_answer_lost']);
    expect((await story()).filter((type) => type === 'HoldSettled')).toHaveLength(1);
  });

  test('before it held anything keeps its key for seconds only, and then the request is served under a new id', async () => {
    await dieClaiming();
    const [{ request_id: dead }] = await rows();
    expect(refused(await ask())).toEqual([409, 'idempotency_in_progress']);
    await lapse();
    const retry = await ask('tokens=3', { api: apis[1] });
    expect([retry.status, replayed(retry)]).toEqual([200, null]);
    expect(retry.headers.get('x-request-id')).not.toBe(dead);
    expect(same(await ask())).toEqual(same(retry));
    await chargedOnce();
  });

  test('with a hold that it has not yet confirmed has called nobody: the request is served, and that hold expires', async () => {
    await dieClaiming();
    const [{ request_id: dead }] = await rows();
    await anotherWriter()(hold(dead, 600_000));
    await lapse();
    expect((await ask()).status).toBe(200);
    expect(await story()).toEqual(['FundsHeld', 'FundsHeld', 'HoldSettled']);
    expect(await billed()).toBe(1);
    await anotherWriter()({ type: 'ExpireHolds', data: { at: new Date(Date.now() + 700_000).toISOString() } });
    expect(same(await ask()).status).toBe(200);
    expect((await story()).filter((type) => type === 'HoldSettled')).toHaveLength(1);
  });

  test('with an open hold keeps others waiting until that has ended', async () => {
    await ask();
    await dieHolding(600_000);
    const retry = await ask();
    expect(refused(retry)).toEqual([409, 'idempotency_in_progress']);
    expect(retry.headers.get('retry-after')).toBe('2');
    expect(await billed()).toBe(1);
  });

  test('with a hold that has run out lets it be served under a new id', async () => {
    await ask();
    const holdId = await dieHolding(-1);
    const retry = await ask();
    expect(retry.status).toBe(200);
    expect(retry.body.id).not.toBe(`gen-${holdId}`);
    expect(same(await ask())).toEqual(same(retry));
    const ends = (await story()).filter((type) => type.startsWith('Hold'));
    expect(ends).toEqual(['HoldSettled', 'HoldExpired', 'HoldSettled']);
  });

  test('lets one of many that come again have its turn', async () => {
    await dieClaiming();
    await lapse();
    const asked = Array.from({ length: 10 }, (_, i) => ask('tokens=3', { api: apis[i % 2] }));
    const served = (await Promise.all(asked)).filter(({ status }) => status === 200);
    expect(served.filter((each) => replayed(each) === null)).toHaveLength(1);
    await chargedOnce();
  });
});

describe('a gateway that was only taken for dead', () => {
  const locked = async (asked: () => Promise<void>) => {
    await database.query('begin; lock table es.events in exclusive mode');
    try {
      await asked();
    } finally {
      await database.query('commit');
    }
  };
  const waiting = (claims: number) =>
    world.until(async () => {
      const sql = `select count(*)::int as waiting from pg_locks where relation = 'es.events'::regclass and not granted`;
      return (await pool.query(sql)).rows[0].waiting >= claims;
    });
  /** The row as others see it who do not wait for what this test has locked. */
  let pool: pg.Pool;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
  });
  afterAll(() => pool.end());
  const lapsed = () =>
    pool.query(`update gateway.answers set leased_until = now() where account_id = '${account.creditId}'`);

  test('while its money was being held gives that back, calls nobody, and leaves the answer to the other', async () => {
    let first: Promise<Answer> | undefined;
    let second: Promise<Answer> | undefined;
    await locked(async () => {
      first = ask('tokens=3', { api: apis[0] });
      await waiting(1);
      await lapsed();
      second = ask('tokens=3', { api: apis[1] });
      await waiting(2);
    });
    const [late, heir] = await Promise.all([first as Promise<Answer>, second as Promise<Answer>]);
    expect([heir.status, replayed(heir)]).toEqual([200, null]);
    expect(refused(late)).toEqual([409, 'idempotency_in_progress']);
    expect(late.headers.get('retry-after')).toBe('2');
    const ends = (await story()).filter((type) => type !== 'FundsHeld').toSorted();
    expect(ends).toEqual(['HoldReleased', 'HoldSettled']);
    expect(await billed()).toBe(1);
    expect(same(await ask())).toEqual(same(heir));
    const { data } = (await world.get('/queries/history', account)).body;
    expect(data.map((each: { error_code: string | null }) => each.error_code).toSorted()).toEqual(['not_served', null]);
  });

  test('and whom nobody replaced is served as ever', async () => {
    let first: Promise<Answer> | undefined;
    await locked(async () => {
      first = ask();
      await waiting(1);
      await lapsed();
    });
    const answer = await (first as Promise<Answer>);
    expect(answer.status).toBe(200);
    expect(same(await ask())).toEqual(same(answer));
    await chargedOnce();
  });
});

test('a request whose claim cannot be confirmed is not served, costs nothing, and may be made again', async () => {
  await database.query(`create function gateway.full() returns trigger language plpgsql as $$ begin
      raise exception 'the disk is full'; end $$;
    create trigger full_disk before update of held on gateway.answers for each row execute function gateway.full()`);
  try {
    expect(refused(await ask())).toEqual([503, 'unavailable']);
  } finally {
    await database.query('drop function gateway.full cascade');
  }
  expect(await story()).toEqual(['FundsHeld', 'HoldReleased']);
  expect(await billed()).toBe(0);
  expect((await ask()).status).toBe(200);
});

/** The client has the option `idempotencyKey`, and leaves the header's name to who serves. */
class Client extends OpenAI {
  protected override idempotencyHeader = 'Idempotency-Key';
}

describe("OpenAI's client", () => {
  const clientOf = () => new Client({ apiKey: account.apiKey, baseURL: `${world.api}/v1` });
  const hello = { model: GPT, messages: [{ role: 'user' as const, content: '[[sandbox tokens=3]]' }] };

  test('gets the same completion for the same idempotencyKey', async () => {
    const create = () => clientOf().chat.completions.create(hello, { idempotencyKey: key }).withResponse();
    const [first, second] = [await create(), await create()];
    expect(second.data).toEqual(first.data);
    expect(second.request_id).toBe(first.request_id);
    await chargedOnce();
  });

  test('gets the same stream, to the usage and the end', async () => {
    const params = { ...hello, stream_options: { include_usage: true } };
    for (let i = 0; i < 2; i++) {
      const stream = clientOf().chat.completions.stream(params, { idempotencyKey: key });
      expect(await stream.finalContent()).toBe('every coin that');
      expect((await stream.totalUsage()).total_tokens).toBe(18);
    }
    await chargedOnce();
  });

  test('waits by itself for a request in progress, and gets its answer', async () => {
    const messages = [{ role: 'user' as const, content: '[[sandbox tokens=3 latency=300]]' }];
    const create = () => clientOf().chat.completions.create({ ...hello, messages }, { idempotencyKey: key });
    const [first, second] = await Promise.all([create(), create()]);
    expect(second).toEqual(first);
    await chargedOnce();
  });

  test('does not try again what would be refused again', async () => {
    await clientOf().chat.completions.create(hello, { idempotencyKey: key });
    const other = clientOf().chat.completions.create({ ...hello, n: 2 }, { idempotencyKey: key });
    const error = await other.then(
      () => undefined,
      (refusal) => refusal,
    );
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 409, type: 'idempotency_key_reused' });
  });
});

test('a request without a key leaves nothing behind', async () => {
  expect((await world.chat(account)).status).toBe(200);
  expect(await rows()).toEqual([]);
});
