import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import {
  ConversationService,
  HeavyWorkQueue,
  type LoadedConversation,
  PreviousResponseRemovedError,
  ResponseStore,
  Secrets,
  STORE_TIMEOUT_MS,
  StorageQuota,
  type StoredChain,
  type StoredResponse,
  type StoredResponseReader,
  type StoredResponseRef,
  type WorkStep,
} from '#application';
import { PostgresResponseStore } from '#connectors';
import { type JsonObject } from '#kernel';
import {
  countPauses,
  createTestDatabase,
  createTestRuntime,
  extendDelay,
  extendTimeouts,
  SystemClock,
  sampleCases,
  type TestAccount,
  TestWorld,
} from '#testing';

const GPT = 'openai/gpt-5-mini';
const DAY_MS = 24 * 60 * 60_000;

let world: TestWorld;
let account: TestAccount;
let other: TestAccount;
let pool: pg.Pool;
beforeAll(async () => {
  world = await TestWorld.open();
  pool = new pg.Pool({ connectionString: world.databaseUrl });
  [account, other] = await Promise.all([world.createAccount(1.05), world.createAccount(1.05)]);
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
  test.each([false, true])('is returned as it was sent (stream: %p)', async (stream) => {
    const answer = await ask('[[sandbox tokens=3]]', { stream });
    const response = answer.body ?? answer.events.at(-2).response;
    expect(response.store).toBe(true);
    const found = await read(response.id);
    expect([found.status, found.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(found.body).toEqual(response);
    expect(found.text).toContain('"cost":0.00001028625,');
    expect((await world.get(`/responses/${response.id}`, account)).body).toEqual(response);
  });

  test('is continued with its conversation, but without its instructions', async () => {
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

  test('is stored completely and charged once if the response that it continues is deleted during generation', async () => {
    const payer = await world.createAccount(1.05);
    const first = (await ask('One two three [[sandbox tokens=3]]', {}, payer)).body;
    const more = { previous_response_id: first.id, store: true };
    const generation = extendDelay(300);
    const answering = ask('[[sandbox tokens=3 latency=300]]', more, payer);
    await world.waitUntil(async () => (await world.listEvents(payer)).at(-1)?.type === 'FundsHeld');
    expect((await remove(first.id, payer)).status).toBe(200);
    generation.end();
    const { status, body: second } = await answering;
    expect([status, second.store, (await rows(first.id)).length]).toEqual([200, true, 0]);
    expect((await read(second.id, payer)).body).toEqual(second);
    const third = (await ask('[[sandbox tokens=3]]', { previous_response_id: second.id }, payer)).body;
    expect(third.usage.input_tokens).toBeGreaterThan(second.usage.input_tokens);
    const facts = (await world.listEvents(payer)).map(({ type }) => type);
    expect(facts.filter((type) => type === 'HoldSettled')).toHaveLength(3);
  });

  test('can be continued on another gateway immediately', async () => {
    const api = await world.addGateway();
    const { id } = (await ask('Hello')).body;
    const body = { model: GPT, input: 'And?', previous_response_id: id };
    expect((await world.post('/v1/responses', body, account, api)).status).toBe(200);
  });

  test('is encrypted in the database', async () => {
    const { id } = (await ask('[[sandbox text="the word is xylophone"]]')).body;
    const [row] = await rows(id);
    const bytes = Buffer.from(row.box, 'base64').toString('latin1');
    expect(`${JSON.stringify(row)} ${bytes}`).not.toMatch(/xylophone|sandbox/);
  });

  test('is visible only to its account; for other accounts it does not exist', async () => {
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

  test('is not found after it is deleted', async () => {
    const { id } = (await ask('Hello')).body;
    const { status, body } = await remove(id);
    expect([status, body]).toEqual([200, { id, object: 'response', deleted: true }]);
    expect((await remove(id)).status).toBe(404);
    expect((await read(id)).status).toBe(404);
    expect((await ask('Hello', { previous_response_id: id })).status).toBe(404);
  });

  test('is stored for 30 days', async () => {
    const { id } = (await ask('Hello')).body;
    const [row] = await rows(id);
    expect(Math.round((row.expires_at - Date.now()) / DAY_MS)).toBe(30);
    await pool.query(`update app.responses set expires_at = now() - interval '1 second' where id = $1`, [id]);
    expect([(await read(id)).status, (await remove(id)).status]).toEqual([404, 404]);
    expect((await ask('Hello', { previous_response_id: id })).status).toBe(404);
  });

  test.each(['nope', 'resp_', 'resp_1', 'resp_%27', 'a'.repeat(90)])(
    'is not found by an invalid id: %s',
    async (id) => {
      expect((await read(id)).status).toBe(404);
      expect((await remove(id)).status).toBe(404);
      expect((await ask('Hello', { previous_response_id: `${decodeURIComponent(id)}\u0000` })).status).toBe(404);
    },
  );

  test('cannot be read by an id that is too long: the status is 414', async () => {
    expect((await read('a'.repeat(9_000))).status).toBe(414);
  });

  test('cannot be streamed', async () => {
    const { id } = (await ask('Hello')).body;
    expect((await world.get(`/v1/responses/${id}?stream=true`, account)).status).toBe(400);
  });
});

describe('a reference to an item', () => {
  const TOOLS = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }];
  const refer = ({ id }: { id: string }) => ({ type: 'item_reference', id });
  const user = (content: string) => ({ role: 'user', content });
  const saidBy = (items: readonly unknown[]) => [user('One'), ...items, user('[[sandbox tokens=3]]')];

  const ANSWERED_BY = [
    [GPT, true],
    ['anthropic/claude-haiku-4.5', false],
    [GPT, false],
  ] as const;
  test.each(sampleCases(ANSWERED_BY, 2))('is equivalent to the item itself (%s, stream: %p)', async (model, stream) => {
    const answer = await ask([user('One')], { model, stream });
    const { output } = answer.body ?? answer.events.at(-2).response;
    const referred = (await ask(saidBy(output.map(refer)), { model })).body;
    const sent = (await ask(saidBy(output), { model })).body;
    expect(referred.status).toBe('completed');
    expect(referred.usage).toEqual(sent.usage);
  });

  test('also finds encrypted reasoning that led to a tool call', async () => {
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

  test('finds items of an earlier conversation with models of two providers', async () => {
    const first = (await ask([user('One')])).body;
    const second = (await ask([user('One'), ...first.output.map(refer), user('Two')], { model: 'claude-haiku-4.5' }))
      .body;
    const references = [...first.output, ...second.output].map(refer);
    expect((await ask([user('One'), ...references, user('Three')])).status).toBe(200);
  });

  test('is valid only for its account, and only as long as its response is stored', async () => {
    const { id, output } = (await ask([user('One')])).body;
    const [item] = output;
    const foreign = await ask([user('One'), refer(item)], {}, other);
    expect([foreign.status, foreign.body.error.param]).toEqual([404, 'input[1].id']);
    await remove(id);
    expect((await ask([user('One'), refer(item)])).status).toBe(404);
    const unkept = (await ask([user('One')], { store: false })).body.output[0];
    expect((await ask([user('One'), refer(unkept)])).status).toBe(404);
  });

  test('leads to 404 if its id is invalid', async () => {
    await ask([user('One')]);
    for (const id of [undefined, null, 7, '', 'a\u0000', 'x'.repeat(200), {}])
      expect([id, (await ask([user('One'), { type: 'item_reference', id }])).status]).toEqual([id, 404]);
  });
});

test.each([{ store: false }, { provider: { data_collection: 'deny' } }])(
  'does not store a response with %j',
  async (more) => {
    const { body } = await ask('Hello', more);
    expect(body.store).toBe(false);
    expect(await rows(body.id)).toEqual([]);
    expect((await read(body.id)).status).toBe(404);
  },
);

describe('the charge for a response', () => {
  const TABLE = 'alter table app.responses rename to';

  test.each([false, true])('is the same if the response cannot be stored (stream: %p)', async (stream) => {
    const payer = await world.createAccount(1.05);
    await pool.query(`${TABLE} elsewhere`);
    const answer = await ask('[[sandbox tokens=3]]', { stream }, payer);
    await pool.query('alter table app.elsewhere rename to responses');
    const response = answer.body ?? answer.events.at(-2).response;
    expect(response).toMatchObject({ status: 'completed', output_text: 'every coin that', store: false });
    expect(response.usage.cost).toBe(0.00001028625);
    expect(await world.fetchBalance(payer)).toBe('1.04998971375');
    expect((await read(response.id, payer)).status).toBe(404);
  });
});

describe('a response whose client has disconnected', () => {
  async function left(model: string, chunkDelayMs: number, more: object = {}) {
    const payer = await world.createAccount(1.05);
    const leave = new AbortController();
    const headers = { authorization: `Bearer ${payer.apiKey}`, 'content-type': 'application/json' };
    const input = `[[sandbox tokens=4 chunk_delay=${chunkDelayMs}]]`;
    const body = JSON.stringify({ model, input, stream: true, ...more });
    const answer = await fetch(`${world.api}/v1/responses`, { method: 'POST', headers, body, signal: leave.signal });
    await answer.body?.getReader().read();
    leave.abort();
    await world.waitUntil(async () => (await world.listEvents(payer)).at(-1)?.type === 'HoldSettled');
    const [record] = (await world.get('/queries/history', payer)).body.data;
    return { record, payer };
  }

  test('is charged for what was generated, and not stored', async () => {
    const { record } = await left(GPT, 20_000);
    expect(record).toMatchObject({ query_type: 'response', error_code: 'client_disconnected', isEstimated: true });
    expect(await rows(`resp_${record.request_id}`)).toEqual([]);
  });

  test.each([GPT, 'google/gemini-2.5-flash'])(
    'is generated to its end and stored if storage was requested: %s',
    async (model) => {
      const { record, payer } = await left(model, 50, { store: true });
      expect(record).toMatchObject({ output_count: 4, error_code: null, isEstimated: false });
      await world.waitUntil(async () => (await read(`resp_${record.request_id}`, payer)).status === 200);
    },
  );
});

/** Stores responses in memory; `saving` decides the result of `save`. */
class Stored extends ResponseStore {
  readonly saved: StoredResponse[] = [];

  constructor(private readonly saving: () => Promise<boolean> = async () => true) {
    super();
  }

  save(response: StoredResponse): Promise<boolean> {
    this.saved.push(response);
    return this.saving();
  }

  async find({ by, id }: Pick<StoredResponseRef, 'by' | 'id'>): Promise<StoredChain | undefined> {
    const found = this.saved.find((each) => (by === 'id' ? each.id === id : each.itemIds.includes(id)));
    if (!found) return undefined;
    const before = found.previousId === null ? undefined : await this.find({ by: 'id', id: found.previousId });
    return { id: found.id, parts: [...(before?.parts ?? []), found.sealed] };
  }

  remove = async () => true;
  removeExpired = async () => {};
  getStoredBytes = async () => 0;
}

const reader: StoredResponseReader = { accountId: 'a', reserveMemory: async () => {} };
const idOf = (n: number) => `resp_00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

describe('the conversation service', () => {
  const id = idOf(0);
  const conversation = { items: [{ role: 'user', content: 'Hi' }], response: '{}' };
  const said = { accountId: 'a', id, conversation };
  const room = new StorageQuota(Number.MAX_SAFE_INTEGER, async () => true);
  const keeping = (
    stored: ResponseStore,
    secret = 1,
    reportError: (problem: string) => void = () => {},
    heavyWork = new HeavyWorkQueue(createTestRuntime()),
  ) =>
    new ConversationService({
      responseStore: stored,
      quota: room,
      secrets: new Secrets(createTestRuntime(), Buffer.alloc(32, secret)),
      heavyWork,
      clock: new SystemClock(),
      runtime: createTestRuntime({ reportError }),
    });

  test('reports an error if the store fails, and returns that the conversation was not stored', async () => {
    const alarms: string[] = [];
    const failing = new Stored(() => Promise.reject(new Error('away')));
    expect(await keeping(failing, 1, (problem) => alarms.push(problem)).store(said)).toBe(false);
    expect(alarms).toEqual(['a response was not stored']);
  });

  test('stops waiting for a store that does not respond', async () => {
    expect(await keeping(new Stored(() => new Promise(() => {}))).store(said)).toBe(false);
  });

  test('does not store a conversation that is too long', async () => {
    const stored = new Stored();
    const long = { items: [{ role: 'user', content: 'x'.repeat(33 * 1024 * 1024) }], response: '{}' };
    expect(await keeping(stored).store({ ...said, conversation: long })).toBe(false);
    expect(stored.saved).toEqual([]);
  });

  test('stores and loads a long conversation without holding the event loop', async () => {
    const stored = new Stored();
    const long = { items: [{ role: 'user', content: '"é'.repeat(700_000) }], response: '{"a":1}' };
    const limit = extendTimeouts(STORE_TIMEOUT_MS);
    const saving = await countPauses(() => keeping(stored).store({ ...said, conversation: long }));
    limit.end();
    expect([saving.result, saving.pauses > 1]).toEqual([true, true]);
    const secrets = new Secrets(createTestRuntime(), Buffer.alloc(32, 1));
    const texts = stored.saved.map(({ sealed: { key, box } }) => secrets.open({ key, box: box.toString('base64') }));
    expect(texts.map((text) => text === JSON.stringify(long))).toEqual([true]); // the format of earlier versions
    const loading = await countPauses(() => keeping(stored).load(reader, id));
    expect(loading.result).toMatchObject({ ...long, length: JSON.stringify(long).length });
    expect(loading.pauses).toBeGreaterThan(1);
  });

  test('does not find a conversation that is encrypted with another master key', async () => {
    const stored = new Stored();
    expect(await keeping(stored, 1).store(said)).toBe(true);
    expect(await keeping(stored, 1).load(reader, id)).toMatchObject(conversation);
    const alarms: string[] = [];
    const other = keeping(stored, 2, (problem) => alarms.push(problem));
    await expect(other.load(reader, id)).rejects.toMatchObject({ status: 404 });
    expect(alarms).toEqual(['a stored response cannot be read']);
  });

  describe('with continued conversations', () => {
    const big = { id: 'msg_big', role: 'user', content: 'x'.repeat(1024 * 1024 + 1) };
    const item = (n: number) => ({ id: `msg_${n}`, role: 'assistant', content: `answer ${n}` });
    const refer = (name: string) => ({ type: 'item_reference', id: name });
    const written = ({ saved }: Stored) => saved.at(-1)?.sealed.box.length;

    /** Stores and loads one turn, which may continue a conversation by `previous` or by references to its items. */
    async function turn(
      conversations: ConversationService,
      n: number,
      input: readonly unknown[],
      previous?: LoadedConversation,
    ) {
      const { input: whole, loadedConversations: recalled } = await conversations.resolveReferences(
        reader,
        input,
        previous ? [previous] : [],
      );
      const items = [...(previous?.items ?? []), ...(whole as JsonObject[]), item(n)];
      const answered = [item(n)];
      const kept = await conversations.store({
        accountId: 'a',
        id: idOf(n),
        outputItems: answered,
        loadedConversations: recalled,
        conversation: { items, response: `{"n":${n}}` },
      });
      return kept ? conversations.load(reader, idOf(n)) : undefined;
    }

    test('writes earlier items only once if a response or references continue a conversation', async () => {
      const stored = new Stored();
      const conversations = keeping(stored);
      const first = await turn(conversations, 1, [big]);
      const second = await turn(conversations, 2, [{ role: 'user', content: 'And?' }], first);
      expect(second?.items.map(({ content }) => String(content).slice(0, 8))).toEqual([
        'xxxxxxxx',
        'answer 1',
        'And?',
        'answer 2',
      ]);
      expect(written(stored)).toBeLessThan(500);
      const referring = ['msg_big', 'msg_1', 'msg_2'].map(refer);
      const third = await turn(conversations, 3, [referring[0], { role: 'user', content: 'New' }, referring[2]]);
      expect(third?.items.map(({ content }) => String(content).slice(0, 8))).toEqual([
        'xxxxxxxx',
        'New',
        'answer 2',
        'answer 3',
      ]);
      expect(third?.response).toBe('{"n":3}');
      expect(written(stored)).toBeLessThan(500);
      expect((await turn(conversations, 4, referring, third))?.items).toHaveLength(8);
      expect(written(stored)).toBeLessThan(500);
    });

    test('does not store a conversation that would copy much of another conversation', async () => {
      const stored = new Stored();
      const conversations = keeping(stored);
      await turn(conversations, 1, [big]);
      await turn(conversations, 2, [{ role: 'user', content: 'Hi' }]);
      const input = ['msg_1', 'msg_2'].map(refer);
      expect((await turn(conversations, 3, input))?.items).toHaveLength(3);
      const large = await conversations.load(reader, idOf(1));
      const small = await conversations.load(reader, idOf(2));
      const both = { accountId: 'a', id: idOf(4), loadedConversations: [small, large] };
      expect(await conversations.store({ ...both, conversation: { items: large.items, response: '{}' } })).toBe(false);
    });

    test('assembles a conversation from at most 1,000 responses', async () => {
      const stored = new Stored();
      const conversations = keeping(stored);
      let last = await turn(conversations, 1, [big]);
      last = last && { ...last, partCount: 1_000 };
      const next = await turn(conversations, 2, [{ role: 'user', content: 'And?' }], last);
      expect([next?.partCount, next?.items.length]).toEqual([1, 4]);
    });

    test('are parsed in batches when the turn of their account comes, unless they are short', async () => {
      const owners: string[] = [];
      class Queue extends HeavyWorkQueue {
        override run(owner: string, bytes: number, steps: readonly WorkStep[]): Promise<unknown> {
          owners.push(`${owner}: ${bytes > 256 * 1024}, ${steps.length} steps`);
          return super.run(owner, bytes, steps);
        }
      }
      const stored = new Stored();
      const conversations = keeping(stored, 1, undefined, new Queue(createTestRuntime()));
      let last = await turn(conversations, 1, [{ role: 'user', content: 'Hi' }]);
      expect(owners).toEqual([]);
      for (let n = 2; n <= 5; n++)
        last = await turn(conversations, n, [{ role: 'user', content: `${n}`.repeat(400_000) }], last);
      expect(owners.at(-1)).toBe('a: true, 4 steps'); // of decoding and parsing, for two batches
      expect(last?.items.map(({ content }) => String(content).slice(0, 8))).toEqual([
        'Hi',
        'answer 1',
        '22222222',
        'answer 2',
        '33333333',
        'answer 3',
        '44444444',
        'answer 4',
        '55555555',
        'answer 5',
      ]);
    });

    test('rejects an item that is referenced twice', async () => {
      const conversations = keeping(new Stored());
      await turn(conversations, 1, [big]);
      const twice = conversations.resolveReferences(reader, [refer('msg_1'), refer('msg_1')]);
      await expect(twice).rejects.toMatchObject({ status: 400, param: 'input[0].id' });
    });
  });
});

describe('the response store', () => {
  const stored = () => new PostgresResponseStore(pool);
  const at = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
  const bytes = (creditId: string) => stored().getStoredBytes(creditId);
  const left = async (...ids: string[]) =>
    (await pool.query('select id from app.responses where id = any($1) order by id', [ids])).rows.map(({ id }) => id);

  function save(id: string, more: Partial<StoredResponse> = {}, size = 100, atMost = 10 ** 9) {
    const sealed = { key: 'k', box: Buffer.alloc((size * 3) / 4) }; // `size` characters in base64
    const whose = { accountId: account.creditId, previousId: null, expiresAt: at(1), itemIds: [] };
    return stored().save({ id, sealed, ...whose, ...more }, atMost);
  }

  const find = (id: string, more: Partial<StoredResponseRef> = {}) =>
    stored().find({ ...reader, accountId: account.creditId, by: 'id', id, now: at(0), ...more });

  test('reserves memory before it reads large responses', async () => {
    await save('resp_large_a', {}, 60_000);
    await save('resp_large_b', { previousId: 'resp_large_a', itemIds: ['item_large'] }, 60_000);
    const taken: number[] = [];
    const take = async (bytes: number) => void taken.push(bytes);
    const chain = await find('item_large', { by: 'item', reserveMemory: take });
    expect([chain?.id, chain?.parts.map(({ box }) => box.length), taken]).toEqual([
      'resp_large_b',
      [45_000, 45_000],
      [120_000],
    ]);
    await find('resp_large_b', { withoutPrevious: true, reserveMemory: take });
    expect(taken).toHaveLength(1);
    const refuse = () => Promise.reject(new Error('no memory'));
    await expect(find('resp_large_b', { reserveMemory: refuse })).rejects.toThrow('no memory');
  });

  test.each([0, 1, 49_153, 3 * 1024 * 1024, 6 * 1024 * 1024 + 1])(
    'stores %d bytes in base64, and finds them',
    async (size) => {
      const [id, box] = [`resp_of_${size}`, randomBytes(size)];
      const { creditId } = await world.createAccount();
      expect(await save(id, { accountId: creditId, sealed: { key: 'k', box } })).toBe(true);
      expect((await rows(id)).map((row) => row.box === box.toString('base64'))).toEqual([true]);
      expect(await bytes(creditId)).toBe(box.toString('base64').length);
      const chain = await find(id, { accountId: creditId });
      expect(chain?.parts.map((part) => [part.key, part.box.equals(box)])).toEqual([['k', true]]);
    },
  );

  test('stores nothing of a long response that exceeds the limit, or continues a missing one', async () => {
    const [{ creditId }, sealed] = [await world.createAccount(), { key: 'k', box: randomBytes(3_150_000) }];
    const whose = { accountId: creditId, sealed };
    expect(await save('resp_over', whose, 0, 4_199_999)).toBe(false);
    const late = save('resp_late', { ...whose, previousId: 'resp_gone' });
    await expect(late).rejects.toBeInstanceOf(PreviousResponseRemovedError);
    expect([await left('resp_over', 'resp_late'), await bytes(creditId)]).toEqual([[], 0]);
    expect(await save('resp_fits', whose, 0, 4_200_000)).toBe(true);
  });

  test('deletes expired responses that no other response continues', async () => {
    await save('resp_a', { expiresAt: at(-3) });
    await save('resp_b', { expiresAt: at(-2), previousId: 'resp_a' });
    await save('resp_c', { previousId: 'resp_b' });
    await save('resp_old', { expiresAt: at(-1) });
    await stored().removeExpired(at(0));
    expect(await left('resp_a', 'resp_b', 'resp_c', 'resp_old')).toEqual(['resp_a', 'resp_b', 'resp_c']);
    expect(await find('resp_b')).toBeUndefined();
    expect((await find('resp_c'))?.parts).toHaveLength(3);
    expect((await find('resp_c', { withoutPrevious: true }))?.parts).toHaveLength(1);
    expect(await find('resp_c', { accountId: other.creditId })).toBeUndefined();
    expect(await stored().remove(account.creditId, 'resp_c', at(0))).toBe(true);
    expect(await left('resp_a', 'resp_b', 'resp_c')).toEqual([]);
  });

  test('serialises a deletion and a concurrent continuation; a missing response cannot be continued', async () => {
    await save('resp_before');
    const saving = await pool.connect();
    await saving.query('begin');
    await saving.query(
      `with used as materialized (select app.stored_for_update($1))
       insert into app.responses (id, account_id, previous_id, expires_at, sealed_by, box)
       select 'resp_behind', $1, 'resp_before', $2, 'k', 'b' from used`,
      [account.creditId, at(1)],
    );
    const removed = stored().remove(account.creditId, 'resp_before', at(0));
    const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%stored_for_update($3)%'`;
    await world.waitUntil(async () => (await pool.query(waits)).rowCount === 1);
    await saving.query('commit');
    saving.release();
    expect(await removed).toBe(true);
    expect(await find('resp_before')).toBeUndefined();
    expect((await find('resp_behind'))?.parts).toHaveLength(2);
    await expect(save('resp_late', { previousId: 'resp_gone' })).rejects.toBeInstanceOf(PreviousResponseRemovedError);
  });

  test('limits the bytes per account, also for concurrent writes, and frees the bytes of deleted responses', async () => {
    const { creditId } = await world.createAccount();
    const whose = { accountId: creditId };
    const all = Array.from({ length: 30 }, (_, i) => save(`resp_many_${i}`, whose, 100, 500));
    const kept = await Promise.all(all);
    expect(kept.filter((each) => each)).toHaveLength(5);
    expect(await bytes(creditId)).toBe(500);
    expect(await save('resp_other', { accountId: other.creditId }, 100, 1_000_000)).toBe(true);
    expect(await stored().remove(creditId, `resp_many_${kept.indexOf(true)}`, at(0))).toBe(true);
    expect(await bytes(creditId)).toBe(400);
    expect(await save('resp_again', whose, 100, 500)).toBe(true);
  });
});

test('stores responses in a separate database if one is configured', async () => {
  const elsewhere = await createTestDatabase();
  const gateway = await world.startGateway({ contentDatabaseUrl: elsewhere.url });
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const send = (method: string, route: string, body?: object) =>
    world.send(method, route, { api: gateway.api, headers, body });
  const { id } = (await send('POST', '/v1/responses', { model: GPT, input: 'Hello' })).body;
  expect((await send('GET', `/v1/responses/${id}`)).status).toBe(200);
  expect((await read(id)).status).toBe(404);
  await gateway.close();
  await elsewhere.drop();
});

describe('the storage of an account', () => {
  const large = { role: 'user', content: `${'word '.repeat(60_000)}[[sandbox tokens=1]]` };
  const FREE = 'openai/gpt-oss-20b:free';

  test('is limited to 1 MiB before the first top-up; further responses are not stored', async () => {
    const stranger = await world.createAccount();
    // Of an account without a top-up, no body above 256 KiB is parsed.
    const input = [{ role: 'user', content: `${'word '.repeat(45_000)}[[sandbox tokens=1]]` }];
    const kept: boolean[] = [];
    for (let i = 0; i < 6; i++) kept.push((await ask(input, { model: FREE }, stranger)).body.store);
    expect(kept).toEqual([true, true, true, false, false, false]);
  });

  test('is read within the memory for request bodies, which is released afterwards', async () => {
    const api = await world.addGateway({ maxBytesInFlight: 200_000 });
    const payer = await world.createAccount(1.05);
    const headers = { authorization: `Bearer ${payer.apiKey}` };
    const content = `${'word '.repeat(12_000)}[[sandbox tokens=1]]`;
    const [short, long] = [await ask([{ role: 'user', content }], {}, payer), await ask([large], {}, payer)];
    const readAt = (id: string) => world.send('GET', `/v1/responses/${id}`, { api, headers });
    for (const _ of [1, 2, 3]) expect((await readAt(short.body.id)).status).toBe(200);
    const facts = await world.listEvents(payer);
    const goesOn = { model: GPT, input: 'And?', previous_response_id: long.body.id };
    const refused = [await readAt(long.body.id), await world.post('/v1/responses', goesOn, payer, api)];
    for (const { status, headers } of refused) expect([status, headers.has('retry-after')]).toEqual([503, true]);
    expect(await world.listEvents(payer)).toHaveLength(facts.length);
  });

  test('has a quota; once it is used up, requests that require storage are rejected before money is held', async () => {
    const api = await world.addGateway({ storedBytesPerAccount: 1_000 });
    const payer = await world.createAccount(1.05);
    const send = (route: string, body: object, headers = {}) =>
      world.send('POST', route, { api, body, headers: { authorization: `Bearer ${payer.apiKey}`, ...headers } });
    const respond = (more: object) => send('/v1/responses', { model: GPT, input: 'Hello', ...more });
    const chat = (headers: object) =>
      send('/v1/chat/completions', { model: GPT, messages: [{ role: 'user', content: 'Hello' }] }, headers);
    await ask('Hello', {}, payer);
    const before = await world.listEvents(payer);
    const [refused, keyed] = [await respond({ store: true }), await chat({ 'idempotency-key': 'k' })];
    expect([refused.status, refused.body.error.param]).toEqual([400, 'store']);
    expect([keyed.status, keyed.body.error.type, keyed.headers.has('retry-after')]).toEqual([
      429,
      'rate_limit_error',
      true,
    ]);
    expect(await world.listEvents(payer)).toHaveLength(before.length);
    const [unasked, unkeyed] = [await respond({}), await chat({})];
    expect([unasked.status, unasked.body.store, unkeyed.status]).toEqual([200, false, 200]);
  });
});
