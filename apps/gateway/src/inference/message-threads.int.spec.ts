/** Threads of Anthropic's Messages API, with its unmodified client. */
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Clock } from '#application';
import { openTappedWorld, shiftClock, type TappedWorld, type TestAccount, type TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const GPT = 'openai/gpt-5-mini';
const ZDR_MODEL = 'openai/gpt-oss-120b';
const CREATED = { type: 'create' as const };
const MISSING = 'msg_00000000-0000-4000-8000-000000000000';
const DAY_MS = 24 * 60 * 60_000;

let tapped: TappedWorld;
let world: TestWorld;
let account: TestAccount;
let client: Anthropic;
beforeAll(async () => {
  tapped = await openTappedWorld();
  ({ world } = tapped);
  account = await world.createAccount(105);
  client = createClient(account);
});
afterAll(() => tapped.close());

const createClient = ({ apiKey }: TestAccount, baseURL = world.api) =>
  new Anthropic({ apiKey, baseURL, maxRetries: 0, logLevel: 'off' });
const user = (content: string) => ({ role: 'user' as const, content });
const continuing = (id: string) => ({ type: 'continue' as const, previous_message_id: id });
const create = (fields: Partial<Anthropic.Beta.MessageCreateParamsNonStreaming>, by = client) =>
  by.beta.messages.create({ model: CLAUDE, max_tokens: 99, messages: [user('[[sandbox tokens=3]]')], ...fields });
const failureOf = async (request: PromiseLike<unknown>) => {
  const error = await request.then(undefined, (reason: unknown) => reason);
  if (!(error instanceof APIError)) throw new Error(`no error: ${JSON.stringify(error)}`);
  return [error.status, (error.error as { error: { details: { error_code: string } } }).error.details.error_code];
};
/** Returns the roles of the messages of each request that Anthropic received. */
const listTurns = () =>
  tapped.tap
    .takeReceived()
    .map(({ body }) => (body.messages as readonly { role: string; content: unknown }[]).map(({ role }) => role));

describe('a thread', () => {
  test.each([
    [CLAUDE, false],
    [CLAUDE, true],
    [GPT, false],
    [GPT, true],
  ])('sends only new messages, and the model gets all of them: %s, streamed: %s', async (model, stream) => {
    const thread = client.beta.messages.thread({ model, max_tokens: 99, system: 'Be kind' });
    const send = async (text: string) =>
      stream ? thread.stream(user(text)).finalMessage() : await thread.send(user(text));
    tapped.tap.takeReceived();
    const first = await send('First [[sandbox tokens=3]]');
    const second = await send('Second [[sandbox tokens=3]]');
    await send('Third [[sandbox tokens=3]]');
    expect(thread.previousMessageId).not.toBe(second.id);
    const bodies = tapped.tap.takeReceived().map(({ body }) => JSON.stringify(body));
    expect(bodies).toHaveLength(3);
    const [text] = first.content;
    for (const part of ['Be kind', 'First', 'Second', 'Third', JSON.stringify((text as { text: string }).text)])
      expect(bodies[2]).toContain(part);
    expect(bodies[1]).not.toContain('Third');
  });

  test('continues several times from the same message', async () => {
    const { id } = await create({ thread: CREATED });
    tapped.tap.takeReceived();
    for (const text of ['a', 'b']) await create({ messages: [user(text)], thread: continuing(id) });
    expect(listTurns()).toEqual([
      ['user', 'assistant', 'user'],
      ['user', 'assistant', 'user'],
    ]);
  });

  test('continues a paused turn without a new message', async () => {
    const { id } = await create({ thread: CREATED });
    tapped.tap.takeReceived();
    await create({ messages: [], thread: continuing(id) });
    expect(listTurns()).toEqual([['user', 'assistant']]);
  });

  test('accepts the same system and tools again, and no other ones', async () => {
    const tools = [{ name: 'weather', input_schema: { type: 'object' as const } }];
    const { id } = await create({ system: 'Be kind', tools, thread: CREATED });
    const thread = continuing(id);
    expect(await create({ system: 'Be kind', tools, thread })).toMatchObject({ type: 'message' });
    for (const changed of [
      { system: 'Be brief' },
      { tools: [] as typeof tools, system: '' },
      { tools: [...tools, ...tools] },
    ])
      expect(await failureOf(create({ ...changed, thread }))).toEqual([400, 'thread_fingerprint_mismatch']);
  });

  test('belongs to its account, and expires after 30 days', async () => {
    const { id } = await create({ thread: CREATED });
    const other = createClient(await world.createAccount(5));
    for (const [by, previous] of [
      [other, id],
      [client, MISSING],
      [client, `resp_${id.slice(4)}`],
      [client, '\0'],
    ] as const)
      expect(await failureOf(create({ thread: continuing(previous) }, by))).toEqual([404, 'thread_not_found']);
    const restoreClock = shiftClock(world.getService(Clock), 30 * DAY_MS);
    expect(await failureOf(create({ thread: continuing(id) }))).toEqual([404, 'thread_not_found']);
    restoreClock();
  });

  test('can be deleted', async () => {
    const { id } = await create({ thread: CREATED });
    const headers = { authorization: `Bearer ${account.apiKey}` };
    const read = await world.send('GET', `/v1/responses/${id}`, { headers });
    const removed = await world.send('DELETE', `/v1/responses/${id}`, { headers });
    expect([read.status, removed.status]).toEqual([404, 200]);
    expect(await failureOf(create({ thread: continuing(id) }))).toEqual([404, 'thread_not_found']);
  });

  test('is rejected without a charge where nothing may be stored, and the tool runner of the SDK does without it', async () => {
    const payer = await world.createAccount(5);
    const full = createClient(payer, await world.addGateway({ storedBytesPerAccount: 1 }));
    await create({ thread: CREATED }, createClient(payer));
    const before = (await world.listEvents(payer)).length;
    expect(await failureOf(create({ thread: CREATED }, full))).toEqual([400, 'thread_unsupported_request']);
    for (const policy of [{ provider: { zdr: true } }, { provider: { data_collection: 'deny' } }, { model: ZDR_MODEL }])
      expect(await failureOf(create({ thread: CREATED, ...policy }, createClient(payer)))).toEqual([
        400,
        'thread_unsupported_request',
      ]);
    expect(await world.listEvents(payer)).toHaveLength(before);
    const runner = full.beta.messages.toolRunner({ model: CLAUDE, max_tokens: 99, tools: [], messages: [user('Hi')] });
    expect(await runner.runUntilDone()).toMatchObject({ type: 'message' });
  });

  test.each<[unknown, string]>([
    [{}, 'thread.type'],
    [{ type: 'new' }, 'thread.type'],
    [{ type: 'continue' }, 'thread.previous_message_id'],
    ['create', 'thread'],
  ])('must be valid: %j', async (thread, param) => {
    const body = { model: CLAUDE, max_tokens: 9, messages: [user('Hi')], thread };
    const { status, body: failure } = await world.post('/v1/messages', body, account);
    expect([status, failure.error.details.param]).toEqual([400, param]);
  });

  test('is not required, but then a request needs messages', async () => {
    for (const thread of [null, undefined, CREATED])
      expect(await failureOf(create({ messages: [], thread }))).toEqual([400, 'invalid_request']);
  });
});
