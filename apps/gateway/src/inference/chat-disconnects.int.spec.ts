import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { money } from '#kernel';
import { extendTimeouts, slowTime, sumUsage, type TestAccount, TestWorld, timeOut } from '#testing';

/** No other timeout lasts as long. */
const DRAIN_MS = 119_000;
const IDLE_MS = 59_000;
const STOPS = 'openai/gpt-5-mini';
const BILLS_ON = 'google/gemini-2.5-flash';

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open({
    DISCONNECT_DRAIN_MS: String(DRAIN_MS),
    UPSTREAM_IDLE_TIMEOUT_MS: String(IDLE_MS),
  });
});
afterAll(() => world.close());

interface Leaving {
  readonly directive: string;
  readonly stream: boolean;
  /** The text that must arrive before the client disconnects; undefined to disconnect before any response. */
  readonly enough?: string | undefined;
  readonly model?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request and disconnects. */
async function leave(account: TestAccount, { directive, stream, enough, model, headers }: Leaving): Promise<void> {
  const hangUp = new AbortController();
  const response = fetch(`${world.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}`, ...headers },
    body: JSON.stringify({
      model: model ?? STOPS,
      stream,
      messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
    }),
    signal: hangUp.signal,
  });
  if (enough === undefined) await world.waitUntil(async () => (await end(account)) === 'FundsHeld');
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

const end = async (account: TestAccount) => (await world.listEvents(account)).at(-1)?.type;

/** Waits until the hold is settled, and returns the data of that event with the history record. */
async function settled(account: TestAccount) {
  await world.waitUntil(async () => (await end(account)) === 'HoldSettled');
  const fact = (await world.listEvents(account)).at(-1);
  if (fact?.type !== 'HoldSettled') throw new Error('the last event is not HoldSettled');
  const [record] = (await world.get('/queries/history', account)).body.data;
  return { ...fact.data, record };
}

describe('a client that disconnects', () => {
  test.each([
    ['in the middle of a slow stream', 'tokens=8 chunk_delay=40', true, '"coin '],
    ['in the middle of a fast stream', 'tokens=20000 chunks=2000', true, '"coin '],
    ['before the first byte of a stream', 'tokens=8 latency=150', true, undefined],
    ['before a non-streaming response', 'tokens=8 latency=150', false, undefined],
  ])('pays for the complete response if the provider continues to bill: %s', async (_, directive, stream, enough) => {
    await world.bill.clear();
    const account = await world.createAccount(1.05);
    const { charged, charge, record } = await slowTime(async () => {
      await leave(account, { directive, stream, enough, model: BILLS_ON });
      return settled(account);
    });
    const tokens = Number(/tokens=(\d+)/.exec(directive)?.[1]);
    expect(charge).toMatchObject({ items: [{ estimated: false, usage: { output: tokens } }], price: charged });
    expect(charge.errorCode).toBeUndefined();
    expect(record).toMatchObject({ output_count: tokens, error_code: null, isEstimated: false });
    const bill = await world.bill.fetchTotal();
    expect(bill.lines).toBe(1);
    expect(money.parseUsd(bill.total_usd)).toBe(BigInt(charge.cost));
  });

  test('pays for what was generated before it disconnected if the provider stops billing on an abort', async () => {
    await world.bill.clear();
    const account = await world.createAccount(1.05);
    await leave(account, { directive: 'tokens=20 chunk_delay=60000', stream: true, enough: '"every ' });
    const { charged, charge, record } = await settled(account);
    expect(charge).toMatchObject({ items: [{ estimated: true }], price: charged, errorCode: 'client_disconnected' });
    expect(record).toMatchObject({ error_code: 'client_disconnected', isEstimated: true });
    await world.waitUntil(async () => (await world.bill.fetchTotal()).lines === 1);
    const made = sumUsage(charge).output ?? 0;
    expect(made).toBeGreaterThan(0);
    expect(made).toBeLessThan(8); // the others would take minutes
  });

  test('pays for the complete response if it has sent an Idempotency-Key', async () => {
    const account = await world.createAccount(1.05);
    const headers = { 'idempotency-key': crypto.randomUUID() };
    await leave(account, {
      directive: 'tokens=8 chunk_delay=40',
      stream: true,
      enough: '"coin ',
      headers,
    });
    const { charge } = await settled(account);
    expect(charge).toMatchObject({ items: [{ estimated: false, usage: { output: 8 } }] });
  });

  test('pays for what has arrived when the drain timeout ends', async () => {
    const account = await world.createAccount(1.05);
    const drain = extendTimeouts(DRAIN_MS);
    const leaving = { directive: 'tokens=900 chunk_delay=30', stream: true, enough: '"comes ', model: BILLS_ON };
    const { charge, record } = await slowTime(async () => {
      await leave(account, leaving);
      await drain.started;
      drain.end();
      return settled(account);
    });
    expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'client_disconnected' });
    expect(sumUsage(charge).output).toBeGreaterThan(2);
    expect(sumUsage(charge).output).toBeLessThan(900);
    expect(record).toMatchObject({ error_code: 'client_disconnected', isEstimated: true });
  });

  test.each([{ stream: true }, { stream: false }])(
    'pays for the input if the provider sends nothing before the drain timeout ends: %j',
    async ({ stream }) => {
      const account = await world.createAccount(1.05);
      const drain = extendTimeouts(DRAIN_MS);
      await leave(account, { directive: 'latency=60000', stream, model: BILLS_ON });
      await world.waitUntil(() => world.traffic.openCallCount > 0);
      await drain.started;
      drain.end();
      const { charged, charge, record } = await settled(account);
      expect(charge).toMatchObject({ items: [{ estimated: true }], price: charged, errorCode: 'client_disconnected' });
      expect(sumUsage(charge)).toMatchObject({ input: expect.any(Number) });
      expect(record).toMatchObject({ error_code: 'client_disconnected', isEstimated: true });
    },
  );

  test('does not affect a concurrent response to another client', async () => {
    const [leaving, staying] = await Promise.all([world.createAccount(1.05), world.createAccount(1.05)]);
    const answer = world.sendChat(staying, 'tokens=8 chunk_delay=40', { stream: true });
    await leave(leaving, { directive: 'tokens=8 chunk_delay=40', stream: true, enough: '"coin ' });
    expect((await answer).events.at(-2).usage.completion_tokens).toBe(8);
  });
});

describe('a response that exceeds the total timeout', () => {
  test('ends with a timeout, and is charged for what has arrived', async () => {
    const account = await world.createAccount(1.05);
    const idle = extendTimeouts(IDLE_MS);
    let hasBegun = false;
    void idle.started.then(() => {
      hasBegun = true; // the idle timeout starts with the first output
    });
    const { events, isComplete } = await timeOut(
      world,
      () => world.sendChat(account, 'tokens=64 chunk_delay=60000', { stream: true }),
      () => hasBegun,
    );
    idle.end();
    expect(events.at(-1)).toMatchObject({ error: { code: 'timeout', type: 'timeout' } });
    expect(isComplete).toBe(false);
    const { charge, record } = await settled(account);
    expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'timeout' });
    expect(record.price_in_usd).toBe(events.at(-1).usage.cost);
  });

  test('is an error without a charge if nothing has arrived', async () => {
    const account = await world.createAccount(1.05);
    const { status, body } = await timeOut(world, () => world.sendChat(account, 'latency=60000'));
    expect([status, body.error.type]).toEqual([504, 'timeout']);
    expect((await world.listEvents(account)).at(-1)).toMatchObject({
      type: 'HoldReleased',
      data: { errorCode: 'timeout' },
    });
    expect(await world.fetchBalance(account)).toBe('1.05');
  });
});
