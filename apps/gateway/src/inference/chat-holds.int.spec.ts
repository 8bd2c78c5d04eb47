/**
 * Partial holds: concurrent requests share a balance, which never falls below zero. How many streams are complete depends
 * on the speed of the host: exposure.simulation.spec.ts counts them in virtual time, and `npm run prove:holds` for real.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { money } from '#kernel';
import { sampleCases, slowTime, type TestAccount, type TestResponse, TestWorld } from '#testing';

/** One of the most expensive chat models. */
const MODEL = 'anthropic/claude-opus-4.7';
/** Has the same prices. No other test uses it. */
const MEASURED_MODEL = 'anthropic/claude-opus-4.6';
const PER_TOKEN = 25e-6 * 1.055;
const ANSWER = 500 * PER_TOKEN;
const QUESTION = 120e-6;
const STREAMS = 16;

/** How many of the streams the money suffices for, and the number of gateways among which they are distributed. */
const CONTENTIONS = [
  [17, 3],
  [10, 3],
  [17, 1],
  [10, 1],
] as const;

let world: TestWorld;
let gateways: readonly string[];
beforeAll(async () => {
  world = await TestWorld.open();
  gateways = [world.api, await world.addGateway(), await world.addGateway()];
});
afterAll(() => world.close());

interface Asked {
  readonly account: TestAccount;
  readonly lengths: readonly number[];
  readonly more?: object;
  readonly directive?: string;
  readonly among?: readonly string[];
}

function ask({ account, lengths, more = {}, directive = '', among = [world.api] }: Asked): Promise<TestResponse[]> {
  const one = (tokens: number, i: number) =>
    world.sendChat(account, `tokens=${tokens} ${directive}`.trim(), { model: MODEL, ...more }, among[i % among.length]);
  return Promise.all(lengths.map(one));
}

const equal = (count: number, tokens = 500) => Array<number>(count).fill(tokens);

function finishOf({ body, events }: TestResponse): string | undefined {
  const ended = events.findLast((event) => event.choices?.[0]?.finish_reason);
  return (body ?? ended)?.choices?.[0].finish_reason;
}

/** Counts responses by status, or by finish reason if they succeeded. */
function ends(answers: readonly TestResponse[]): Record<string, number> {
  const count: Record<string, number> = {};
  for (const answer of answers) {
    const end = answer.status === 200 ? String(finishOf(answer)) : String(answer.status);
    count[end] = (count[end] ?? 0) + 1;
  }
  return count;
}

/** Returns the sum of all overruns of the account, in pico-USD. */
async function overrun(account: TestAccount): Promise<bigint> {
  let sum = 0n;
  for (const { type, data } of await world.listEvents(account))
    if (type === 'HoldSettled') sum += BigInt(data.charge.price) - BigInt(data.charged);
  return sum;
}

async function capped(usd: number): Promise<TestAccount> {
  const account = await world.createAccount(30);
  const headers = { 'x-credit-id': account.creditId };
  const limit = Number(usd.toFixed(6));
  const { body } = await world.send('POST', '/keys', { body: { name: 'capped', usage_limit_usd: limit }, headers });
  return { ...account, apiKey: body.data.api_key };
}

const paidBy = [
  ['a balance', (usd: number) => world.createAccount(usd), 0],
  ['the cap of a key', capped, 1],
] as const;

/** Sends `STREAMS` concurrent requests for streams, distributed among the first `gatewayCount` gateways. */
function askForStreams(account: TestAccount, gatewayCount: number): Promise<TestResponse[]> {
  const among = gateways.slice(0, gatewayCount);
  return ask({ account, lengths: equal(STREAMS), more: { stream: true }, directive: 'chunk_delay=5', among });
}

describe.each(paidBy)('concurrent streams without an output limit, paid by %s', (_, withMoney, first) => {
  test.each(sampleCases(CONTENTIONS, 1, first))(
    'cost no more than the money, which suffices for %i streams: %i gateways',
    async (affordable, gatewayCount) => {
      const account = await withMoney(affordable * (ANSWER + QUESTION));
      const { stop = 0, length = 0, ...others } = ends(await askForStreams(account, gatewayCount));
      expect(stop).toBeGreaterThan(0);
      expect(stop + length + Object.values(others).reduce((sum, count) => sum + count, 0)).toBe(STREAMS);
      expect(Object.keys(others).filter((end) => !['402', '503', 'error'].includes(end))).toEqual([]);
      expect(await overrun(account)).toBe(0n);
      expect(Number(await world.fetchBalance(account))).toBeGreaterThanOrEqual(0);
    },
  );
});

test('completes all concurrent non-streaming responses if the balance suffices for them', async () => {
  const account = await world.createAccount(18 * (ANSWER + QUESTION));
  expect(ends(await slowTime(() => ask({ account, lengths: equal(16) })))).toEqual({ stop: 16 });
  const agents = await world.createAccount(1.05);
  expect(ends(await slowTime(() => ask({ account: agents, lengths: equal(8, 16) })))).toEqual({ stop: 8 });
});

test('completes all concurrent streams even if the balance does not cover the sum of their output limits', async () => {
  const account = await world.createAccount(1);
  const request = { account, lengths: equal(8, 300), more: { stream: true, max_tokens: 32_000 } };
  const answers = await slowTime(() => ask(request));
  expect(ends(answers)).toEqual({ stop: 8 });
});

test('completes a long response and extends its hold in steps', async () => {
  const account = await world.createAccount(1.05);
  const request = { account, lengths: [20_000], more: { stream: true }, directive: 'chunk_delay=1 chunks=400' };
  const [answer] = await slowTime(() => ask(request));
  expect(answer && finishOf(answer)).toBe('stop');
  const facts = await world.listEvents(account);
  const amounts = facts.flatMap(({ type, data }) =>
    type === 'FundsHeld' || type === 'HoldExtended' ? [money.parseJsonAmount(data.amount)] : [],
  );
  expect(amounts.length).toBeGreaterThan(3);
  expect(amounts.length).toBeLessThan(10);
  expect(amounts).toEqual(amounts.toSorted((a, b) => Number(a - b)));
  const settled = facts.find(({ type }) => type === 'HoldSettled');
  expect(settled?.data).toMatchObject({ held: String(amounts.at(-1)), charge: { items: [{ estimated: false }] } });
  expect(await overrun(account)).toBe(0n);
});

test.each([{ stream: true }, { stream: false }])(
  'ends a response with finish reason length when the money is used up, and charges what was delivered: %j',
  async (more) => {
    const account = await world.createAccount(4_100 * PER_TOKEN);
    const request = { account, lengths: [20_000], more, directive: 'chunk_delay=1 chunks=1000' };
    const [answer] = await slowTime(() => ask(request));
    if (!answer) throw new Error('there is no response');
    expect(finishOf(answer)).toBe('length');
    const facts = await world.listEvents(account);
    const settled = facts.find(({ type }) => type === 'HoldSettled');
    const text =
      answer.body?.choices[0].message.content ??
      answer.events.map((e) => e.choices?.[0]?.delta?.content ?? '').join('');
    const words = text.split(' ').length;
    expect(words).toBeGreaterThan(3_900);
    if (settled?.type !== 'HoldSettled') throw new Error('the hold was not settled');
    const [item] = settled.data.charge.items;
    expect(Math.abs(Number(item?.usage.output) - words)).toBeLessThan(20);
    expect(await overrun(account)).toBe(0n);
  },
);

test('appends only two events for a short response', async () => {
  const account = await world.createAccount(1.05);
  const before = (await world.listEvents(account)).length;
  await ask({ account, lengths: [300], more: { stream: true }, directive: 'chunk_delay=1' });
  expect((await world.listEvents(account)).slice(before).map(({ type }) => type)).toEqual(['FundsHeld', 'HoldSettled']);
});

test('lets a long response use the money that other responses release while it is generated', async () => {
  const more = { stream: true, model: MEASURED_MODEL };
  const rich = await world.createAccount(10);
  await ask({ account: rich, lengths: [400], more, directive: 'chunk_delay=20 chunks=25' }); // measures the speed
  const account = await world.createAccount(4_100 * PER_TOKEN);
  const others = { account, lengths: equal(6, 100), more, directive: 'chunk_delay=20 chunks=25' };
  const short = ask(others);
  const held = async () => (await world.listEvents(account)).filter(({ type }) => type === 'FundsHeld').length;
  await world.waitUntil(async () => (await held()) === others.lengths.length);
  const long = { account, lengths: [2_500], more, directive: 'chunk_delay=2 chunks=250' };
  expect(ends(await slowTime(() => ask(long)))).toEqual({ stop: 1 });
  expect(ends(await short)).toEqual({ stop: 6 });
});

test('does not truncate a response if its maximum price is held, even if its tokens are overestimated', async () => {
  const account = await world.createAccount(1.05);
  const model = 'openai/gpt-5.4';
  // The provider counts twice as many tokens as the gateway.
  await world.sendChat(account, `text="${'!'.repeat(2_000)}"`, { model, stream: true });
  const answer = await world.sendChat(account, 'tokens=4500 chunks=1', { model, stream: true, max_tokens: 5_000 });
  expect([answer.status, finishOf(answer)]).toEqual([200, 'stop']);
});
