import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Clock, Conversations, Secrets, type StoredResponse, StoredResponses, SystemClock } from '#application';
import { PostgresStoredResponses } from '#connectors';
import { type TestAccount, World } from '#testing';

const GPT = 'openai/gpt-5-mini';
const DAY_MS = 24 * 60 * 60_000;

let world: World;
let account: TestAccount;
let other: TestAccount;
let pool: pg.Pool;
beforeAll(async () => {
  world = await World.open();
  pool = new pg.Pool({ connectionString: world.databaseUrl });
  [account, other] = await Promise.all([world.account(1.05), world.account(1.05)]);
});
afterAll(async () => {
  await pool.end();
  await world.close();
});

const ask = (input: unknown, more: object = {}, payer = account) =>
  world.post('/v1/responses', { model: GPT, input, ...more }, payer);
const read = (id: string, payer = account) => world.get(`/v1/responses/${id}`, payer);
const remove = (id: string, payer = account) =>
  world.send('DELETE', `/v1/responses/${id}`, { headers: { authorization: `Bearer ${payer.apiKey}` } });
const rows = async (id: string) => (await pool.query('select * from app.responses where id = $1', [id])).rows;

describe('a stored response', () => {
  test.each([false, true])('is found as it was answered (stream: %p)', async (stream) => {
    const answer = await ask('[[sandbox tokens=3]]', { stream });
    const response = answer.body ?? answer.events.at(-2).response;
    expect(response.store).toBe(true);
    const found = await read(response.id);
    expect([found.status, found.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(found.body).toEqual(response);
    expect(found.text).toContain('"cost":0.00001028625,');
    expect((await world.get(`/responses/${response.id}`, account)).body).toEqual(response);
  });

  test('can be continued: what was said before is said again, the instructions are not', async () => {
    const first = (await ask('One two three', { instructions: 'Be brief, be kind, be gone' })).body;
    const second = (await ask('[[sandbox tokens=3]]', { previous_response_id: first.id })).body;
    expect(second.previous_response_id).toBe(first.id);
    const said = [
      { role: 'user', content: 'One two three' },
      { role: 'assistant', content: first.output_text },
      { role: 'user', content: '[[sandbox tokens=3]]' },
    ];
    const chat = (await world.post('/v1/chat/completions', { model: GPT, messages: said }, account)).body;
    expect(second.usage.input_tokens).toBe(chat.usage.prompt_tokens);
    expect(second.usage.cost).toBe(chat.usage.cost);
    const third = (await ask('[[sandbox tokens=3]]', { previous_response_id: second.id })).body;
    expect(third.usage.input_tokens).toBeGreaterThan(second.usage.input_tokens);
  });

  test('can be continued on any gateway at once', async () => {
    const api = await world.anotherGateway();
    const { id } = (await ask('Hello')).body;
    const body = { model: GPT, input: 'And?', previous_response_id: id };
    expect((await world.post('/v1/responses', body, account, api)).status).toBe(200);
  });

  test('cannot be read in the database', async () => {
    const { id } = (await ask('[[sandbox text="the word is xylophone"]]')).body;
    const [row] = await rows(id);
    const bytes = Buffer.from(row.box, 'base64').toString('latin1');
    expect(`${JSON.stringify(row)} ${bytes}`).not.toMatch(/xylophone|sandbox/);
  });

  test('belongs to its account, and no other learns that it exists', async () => {
    const { id } = (await ask('Hello')).body;
    const unknown = 'resp_00000000-0000-4000-8000-000000000000';
    for (const each of [read, remove]) {
      const [foreign, none] = [await each(id, other), await each(unknown, other)];
      expect([foreign.status, none.status]).toEqual([404, 404]);
      expect(foreign.text).toBe(none.text);
    }
    const continued = await ask('Hello', { previous_response_id: id }, other);
    expect([continued.status, continued.body.error.param]).toEqual([404, 'previous_response_id']);
    expect((await read(id)).status).toBe(200);
    expect((await world.get(`/v1/responses/${id}`)).status).toBe(401);
  });

  test('is gone once it is deleted', async () => {
    const { id } = (await ask('Hello')).body;
    const { status, body } = await remove(id);
    expect([status, body]).toEqual([200, { id, object: 'response', deleted: true }]);
    expect((await remove(id)).status).toBe(404);
    expect((await read(id)).status).toBe(404);
    expect((await ask('Hello', { previous_response_id: id })).status).toBe(404);
  });

  test('is kept for 30 days', async () => {
    const { id } = (await ask('Hello')).body;
    const [row] = await rows(id);
    expect(Math.round((row.expires_at - Date.now()) / DAY_MS)).toBe(30);
    await pool.query(`update app.responses set expires_at = now() - interval '1 second' where id = $1`, [id]);
    expect([(await read(id)).status, (await remove(id)).status]).toEqual([404, 404]);
    expect((await ask('Hello', { previous_response_id: id })).status).toBe(404);
  });

  test.each(['nope', 'resp_', 'resp_1', 'resp_%27', 'a'.repeat(90)])('is not found by an odd id: %s', async (id) => {
    expect((await read(id)).status).toBe(404);
    expect((await remove(id)).status).toBe(404);
    expect((await ask('Hello', { previous_response_id: `${decodeURIComponent(id)}\u0000` })).status).toBe(404);
  });

  test('is not looked for by an endless id', async () => {
    expect((await read('a'.repeat(9_000))).status).toBe(414);
  });

  test('is not streamed', async () => {
    const { id } = (await ask('Hello')).body;
    expect((await world.get(`/v1/responses/${id}?stream=true`, account)).status).toBe(400);
  });
});

describe('a reference to an item', () => {
  const TOOLS = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }];
  const refer = ({ id }: { id: string }) => ({ type: 'item_reference', id });
  const user = (content: string) => ({ role: 'user', content });
  const saidBy = (items: readonly unknown[]) => [user('One'), ...items, user('[[sandbox tokens=3]]')];

  test.each([
    [GPT, false],
    [GPT, true],
    ['anthropic/claude-haiku-4.5', false],
  ])('is as good as the item itself (%s, stream: %p)', async (model, stream) => {
    const answer = await ask([user('One')], { model, stream });
    const { output } = answer.body ?? answer.events.at(-2).response;
    const referred = (await ask(saidBy(output.map(refer)), { model })).body;
    const sent = (await ask(saidBy(output), { model })).body;
    expect(referred.status).toBe('completed');
    expect(referred.usage).toEqual(sent.usage);
  });

  test('finds also the reasoning that led to a call, which only its maker can read', async () => {
    const question = user('[[sandbox tool=weather reasoning=3]]');
    const { output } = (await ask([question], { tools: TOOLS })).body;
    const [reasoning, call] = output;
    expect([reasoning.type, call.type]).toEqual(['reasoning', 'function_call']);
    const result = { type: 'function_call_output', call_id: call.call_id, output: 'sun' };
    const without = (await ask([question, call, result], { tools: TOOLS })).body;
    const { id, ...unnamed } = call;
    for (const each of [refer(call), call, unnamed]) {
      const { status, body } = await ask([question, refer(reasoning), each, result], { tools: TOOLS });
      expect([status, body.status]).toEqual([200, 'completed']);
      expect(body.usage.input_tokens).toBeGreaterThan(without.usage.input_tokens);
    }
  });

  test('finds the conversation before it with one look-up, from any provider', async () => {
    const first = (await ask([user('One')])).body;
    const second = (await ask([user('One'), ...first.output.map(refer), user('Two')], { model: 'claude-haiku-4.5' }))
      .body;
    const references = [...first.output, ...second.output].map(refer);
    expect((await ask([user('One'), ...references, user('Three')])).status).toBe(200);
  });

  test('is of its account, and as long as its response', async () => {
    const { id, output } = (await ask([user('One')])).body;
    const [item] = output;
    const foreign = await ask([user('One'), refer(item)], {}, other);
    expect([foreign.status, foreign.body.error.param]).toEqual([404, 'input[1].id']);
    await remove(id);
    expect((await ask([user('One'), refer(item)])).status).toBe(404);
    const unkept = (await ask([user('One')], { store: false })).body.output[0];
    expect((await ask([user('One'), refer(unkept)])).status).toBe(404);
  });

  test.each([undefined, null, 7, '', 'a\u0000', 'x'.repeat(200), {}])('with the id %p is not found', async (id) => {
    await ask([user('One')]);
    expect((await ask([user('One'), { type: 'item_reference', id }])).status).toBe(404);
  });
});

test.each([{ store: false }, { provider: { data_collection: 'deny' } }])(
  'a response with %j is not kept',
  async (more) => {
    const { body } = await ask('Hello', more);
    expect(body.store).toBe(false);
    expect(await rows(body.id)).toEqual([]);
    expect((await read(body.id)).status).toBe(404);
  },
);

describe('the charge for a response', () => {
  const TABLE = 'alter table app.responses rename to';

  test.each([false, true])('does not depend on whether it can be stored (stream: %p)', async (stream) => {
    const payer = await world.account(1.05);
    await pool.query(`${TABLE} elsewhere`);
    const answer = await ask('[[sandbox tokens=3]]', { stream }, payer);
    await pool.query('alter table app.elsewhere rename to responses');
    const response = answer.body ?? answer.events.at(-2).response;
    expect(response).toMatchObject({ status: 'completed', output_text: 'every coin that', store: false });
    expect(response.usage.cost).toBe(0.00001028625);
    expect(await world.balance(payer)).toBe('1.04998971375');
    expect((await read(response.id, payer)).status).toBe(404);
  });
});

describe('a response whose client did not wait for it', () => {
  async function left(model: string, more: object) {
    const payer = await world.account(1.05);
    const leave = new AbortController();
    const headers = { authorization: `Bearer ${payer.apiKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model, input: '[[sandbox tokens=4 chunk_delay=50]]', stream: true, ...more });
    const answer = await fetch(`${world.api}/v1/responses`, { method: 'POST', headers, body, signal: leave.signal });
    await answer.body?.getReader().read();
    leave.abort();
    await world.until(async () => (await world.facts(payer)).at(-1)?.type === 'HoldSettled');
    const [record] = (await world.get('/queries/history', payer)).body.data;
    return { record, payer };
  }

  test('is charged as far as it was made, and not kept', async () => {
    const { record } = await left(GPT, {});
    expect(record).toMatchObject({ query_type: 'response', error_code: 'client_disconnected', isEstimated: true });
    expect(await rows(`resp_${record.request_id}`)).toEqual([]);
  });

  test.each([GPT, 'google/gemini-2.5-flash'])(
    'is made to its end and kept where that was asked for: %s',
    async (model) => {
      const { record, payer } = await left(model, { store: true });
      expect(record).toMatchObject({ output_count: 4, error_code: null, isEstimated: false });
      await world.until(async () => (await read(`resp_${record.request_id}`, payer)).status === 200);
    },
  );
});

/** A store that does what a test wants. */
class Stored extends StoredResponses {
  readonly saved: StoredResponse[] = [];

  constructor(private readonly saving: () => Promise<void>) {
    super();
  }

  save(response: StoredResponse): Promise<void> {
    this.saved.push(response);
    return this.saving();
  }

  find = async () => this.saved.at(-1)?.sealed;
  findByItem = async () => this.saved.at(-1)?.sealed;
  remove = async () => true;
  removeExpired = async () => {};
}

describe('conversations', () => {
  const ID = 'resp_00000000-0000-4000-8000-000000000000';
  const said = { items: [{ role: 'user', content: 'Hi' }], response: '{}' };
  const keeping = (stored: StoredResponses, secret = 1, alarm: (problem: string) => void = () => {}, clock?: Clock) =>
    new Conversations(stored, new Secrets(Buffer.alloc(32, secret)), clock ?? new SystemClock(), alarm);

  test('are not kept by a store that fails, which raises an alarm', async () => {
    const alarms: string[] = [];
    const failing = new Stored(() => Promise.reject(new Error('away')));
    expect(await keeping(failing, 1, (problem) => alarms.push(problem)).keep('a', ID, said)).toBe(false);
    expect(alarms).toEqual(['a response was not stored']);
  });

  test('do not wait forever for a store that hangs', async () => {
    expect(await keeping(new Stored(() => new Promise(() => {}))).keep('a', ID, said)).toBe(false);
  });

  test('are not kept when they have grown too long', async () => {
    const stored = new Stored(async () => {});
    const long = { ...said, items: [{ role: 'user', content: 'x'.repeat(33 * 1024 * 1024) }] };
    expect(await keeping(stored).keep('a', ID, long)).toBe(false);
    expect(stored.saved).toEqual([]);
  });

  test('that another master key has sealed are not found', async () => {
    const stored = new Stored(async () => {});
    expect(await keeping(stored, 1).keep('a', ID, said)).toBe(true);
    expect(await keeping(stored, 1).recall('a', ID)).toEqual(said);
    await expect(keeping(stored, 2).recall('a', ID)).rejects.toMatchObject({ status: 404 });
  });

  test('that have expired are deleted, and no others', async () => {
    const stored = new PostgresStoredResponses(pool);
    const at = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
    const sealed = { key: 'k', box: 'b' };
    const ids = ['resp_old', 'resp_young'];
    await stored.save({ id: 'resp_old', accountId: account.creditId, expiresAt: at(-1), sealed, itemIds: [] });
    await stored.save({ id: 'resp_young', accountId: account.creditId, expiresAt: at(1), sealed, itemIds: [] });
    await stored.removeExpired(new SystemClock().now());
    const left = await pool.query('select id from app.responses where id = any($1)', [ids]);
    expect(left.rows).toEqual([{ id: 'resp_young' }]);
  });
});
