import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { money } from '#kernel';
import { type TestAccount, usageIn, World } from '#testing';

const DRAIN_MS = 600;
const TOTAL_MS = 1_500;

let world: World;
beforeAll(async () => {
  world = await World.open({
    DISCONNECT_DRAIN_MS: String(DRAIN_MS),
    UPSTREAM_TOTAL_TIMEOUT_MS: String(TOTAL_MS),
  });
});
afterAll(() => world.close());

/** Asks, and hangs up once `enough` of the answer has come. */
async function leave(account: TestAccount, directive: string, stream: boolean, enough?: string): Promise<void> {
  const hangUp = new AbortController();
  const response = fetch(`${world.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({
      model: 'openai/gpt-5-mini',
      stream,
      messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
    }),
    signal: hangUp.signal,
  });
  if (enough === undefined) await world.until(async () => (await end(account)) === 'FundsHeld');
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

const end = async (account: TestAccount) => (await world.facts(account)).at(-1)?.type;

/** What became of it, once it has ended. */
async function settled(account: TestAccount) {
  await world.until(async () => (await end(account)) === 'HoldSettled');
  const fact = (await world.facts(account)).at(-1);
  if (fact?.type !== 'HoldSettled') throw new Error('it was settled, and then something else happened');
  const [record] = (await world.get('/queries/history', account)).body.data;
  return { ...fact.data, record };
}

describe('a client that hangs up', () => {
  test.each([
    ['in the middle of a slow stream', 'tokens=8 chunk_delay=40', true, '"coin '],
    ['in the middle of a stream that came at once', 'tokens=20000 chunks=2000', true, '"coin '],
    ['before the first byte of a stream', 'tokens=8 latency=150', true, undefined],
    ['before an answer in one piece', 'tokens=8 latency=150', false, undefined],
  ])('%s pays for the whole answer, as the upstream does bill it', async (_, directive, stream, enough) => {
    await world.bill.clear();
    const account = await world.account(1.05);
    await leave(account, directive, stream, enough);
    const { charged, charge, record } = await settled(account);
    const tokens = Number(/tokens=(\d+)/.exec(directive)?.[1]);
    expect(charge).toMatchObject({ items: [{ estimated: false, usage: { output: tokens } }], price: charged });
    expect(charge.errorCode).toBeUndefined();
    expect(record).toMatchObject({ output_count: tokens, error_code: null, isEstimated: false });
    const bill = await world.bill.total();
    expect(bill.lines).toBe(1);
    expect(money.usd(bill.total_usd)).toBe(BigInt(charge.cost));
  });

  test('is not waited for longer than it takes to drain: then it pays for what had come', async () => {
    const account = await world.account(1.05);
    await leave(account, 'tokens=64 chunk_delay=30', true, '"coin ');
    const { charge, record } = await settled(account);
    expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'client_disconnected' });
    expect(usageIn(charge).output).toBeGreaterThan(2);
    expect(usageIn(charge).output).toBeLessThan(64);
    expect(record).toMatchObject({ error_code: 'client_disconnected', isEstimated: true });
  });

  test('does not disturb the answers to others', async () => {
    const [leaving, staying] = await Promise.all([world.account(1.05), world.account(1.05)]);
    const answer = world.chat(staying, 'tokens=8 chunk_delay=40', { stream: true });
    await leave(leaving, 'tokens=8 chunk_delay=40', true, '"coin ');
    expect((await answer).events.at(-2).usage.completion_tokens).toBe(8);
  });
});

describe('an answer that takes longer than any may', () => {
  test('is ended with a timeout, and charged for what had come', async () => {
    const account = await world.account(1.05);
    const { events } = await world.chat(account, 'tokens=64 chunk_delay=100', { stream: true });
    expect(events.at(-3)).toMatchObject({ error: { code: 'timeout', type: 'timeout' } });
    expect(events.at(-1)).toBe('[DONE]');
    const { charge, record } = await settled(account);
    expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'timeout' });
    expect(record.price_in_usd).toBe(events.at(-2).usage.cost);
  });

  test('is an error when nothing had come, and costs nothing', async () => {
    const account = await world.account(1.05);
    const { status, body } = await world.chat(account, 'latency=5000');
    expect([status, body.error.type]).toEqual([504, 'timeout']);
    expect((await world.facts(account)).at(-1)).toMatchObject({ type: 'HoldReleased', data: { errorCode: 'timeout' } });
    expect(await world.balance(account)).toBe('1.05');
  });
});
