/** Measured output lengths and speeds of models, which gateways share. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { type TestAccount, TestWorld } from '#testing';

const MODEL = 'openai/gpt-5-mini';
const USD_PER_TOKEN = 2e-6 * 1.055;
const CHOICES = 4;
const TOKENS_PER_CHOICE = 1_200;

let world: TestWorld;
let pool: pg.Pool;
beforeAll(async () => {
  world = await TestWorld.open();
  pool = new pg.Pool({ connectionString: world.databaseUrl });
  pool.on('error', () => {}); // the database may be dropped before the last connection is closed
});
afterAll(async () => {
  await pool.end();
  await world.close();
});

/** Sends a short chat without an output limit, and returns what was held for it. */
async function hold(account: TestAccount, api: string) {
  const before = (await world.listEvents(account)).length;
  expect((await world.sendChat(account, 'tokens=1', { model: MODEL, stream: true }, api)).status).toBe(200);
  const facts = (await world.listEvents(account)).slice(before);
  const [held] = facts.flatMap(({ type, data }) => (type === 'FundsHeld' ? [data] : []));
  if (!held) throw new Error('nothing was held');
  return held;
}

test('a gateway that has just started knows the lengths per choice and the speeds that others measured', async () => {
  const account = await world.createAccount(5);
  const poor = await world.createAccount(0.11);
  const first = await hold(poor, world.api);
  expect(first.stopPrice).toBeUndefined();
  expect(Number(first.amount) / 1e12).toBeGreaterThan(1_500 * USD_PER_TOKEN);
  const measure = () => {
    const more = { model: MODEL, n: CHOICES, max_tokens: 2_000, stream: true };
    // A provider that pauses: the speed of a response that its client delays is not measured.
    const directive = `tokens=${TOKENS_PER_CHOICE} chunks=10 chunk_delay=20`;
    return world.sendChat(account, directive, more);
  };
  const measured = await Promise.all(Array.from({ length: 20 }, measure));
  expect(measured.map(({ status }) => status)).toEqual(Array(20).fill(200));
  const isShared = async (name: string, count: number) => {
    const { rows } = await pool.query('select count(*)::int as shared from limits.samples where name like $1', [name]);
    return rows[0].shared >= count;
  };
  await world.waitUntil(() => isShared(`output tokens of ${MODEL}`, 20));
  await world.waitUntil(() => isShared(`tokens per second of % ${MODEL}`, 1));
  const { amount, stopPrice } = await hold(poor, await world.addGateway());
  const usd = Number(amount) / 1e12;
  expect(usd).toBeGreaterThan(TOKENS_PER_CHOICE * USD_PER_TOKEN);
  expect(usd).toBeLessThan(1_500 * USD_PER_TOKEN);
  expect(Number(stopPrice)).toBeGreaterThan(0);
});
