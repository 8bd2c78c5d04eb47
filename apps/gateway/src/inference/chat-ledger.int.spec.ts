import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { PriceListLine } from '#domain';
import { money } from '#kernel';
import { isEstimated, isExplained, listCharges, type TestAccount, TestWorld } from '#testing';

const FLAT = 'countinghouse/flat';
const MODELS = ['openai/gpt-5-mini', 'openai/gpt-5.4-mini', 'openai/gpt-4o-mini', FLAT];
/** Directives after which the provider reports exactly what it will invoice, or invoices nothing. */
const TOLD = [
  '',
  'tokens=40',
  'tokens=20 reasoning=15',
  'tokens=0',
  'fault=zero tokens=0',
  'fault=cached',
  'fault=400',
  'fault=500',
  'fault=refuse',
  'id=books fault=500 fault_times=1',
];
/** Directives after which the gateway must estimate the cost. */
const GUESSED = ['fault=no_usage tokens=30', 'fault=cut tokens=30'];

let world: TestWorld;
let account: TestAccount;
let database: pg.Pool;
beforeAll(async () => {
  world = await TestWorld.open();
  database = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
  account = await world.createAccount(10.5);
  const mixes = MODELS.flatMap((model) => [...TOLD, ...GUESSED].map((directive) => ({ model, directive })));
  // The sandbox does not bill a flat request without usage, but the price list has a price for it.
  const mixed = mixes.filter(({ model, directive }) => model !== FLAT || directive !== 'fault=zero tokens=0');
  const run = (stream: boolean) =>
    mixed.map(({ model, directive }) => world.sendChat(account, directive, { model, stream, max_tokens: 64 }));
  await Promise.all([...run(false), ...run(true)]);
  await leaveInTheMiddle();
});
afterAll(async () => {
  await database.end();
  await world.close();
});

/**
 * Disconnects from a stream that was requested with an idempotency key. The response is saved for a retry, so the
 * provider generates and invoices the complete response.
 */
async function leaveInTheMiddle(): Promise<void> {
  const messages = [{ role: 'user', content: '[[sandbox tokens=8 chunk_delay=20]]' }];
  const response = await fetch(`${world.api}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${account.apiKey}`,
      'idempotency-key': crypto.randomUUID(),
    },
    body: JSON.stringify({ model: MODELS[0], stream: true, messages }),
  });
  await response.body?.cancel();
  await world.waitUntil(async () => (await world.post('/credits/balance', undefined, account)).body.held_usd === 0);
}

const charges = async () => listCharges(await world.listEvents(account));

const total = (amounts: string[]) => amounts.reduce((sum, amount) => sum + BigInt(amount), 0n);

async function journal(accountLike: string): Promise<bigint> {
  const sql = 'select coalesce(sum(amount), 0)::text as sum from books.journal where account like $1';
  return BigInt((await database.query(sql, [accountLike])).rows[0].sum);
}

describe('the ledger after a mixed run', () => {
  test('has charges with reported usage that cost exactly what the provider billed for such calls', async () => {
    const lines = await world.bill.fetchLines();
    const reported = lines.filter(({ fault }) => fault !== 'cut' && fault !== 'no_usage');
    const exact = (await charges()).filter((charge) => !isEstimated(charge));
    expect(exact).toHaveLength(reported.length);
    expect(exact.length).toBeGreaterThan(MODELS.length * 8);
    expect(total(exact.map(({ cost }) => cost))).toBe(
      total(reported.map(({ usd }) => money.toJsonAmount(money.parseUsd(usd)))),
    );
  });

  test('has as many estimates as the bill has lines for calls without reported usage', async () => {
    const lines = await world.bill.fetchLines();
    const untold = lines.filter(({ fault }) => fault === 'cut' || fault === 'no_usage');
    const guessed = (await charges()).filter(isEstimated);
    expect(guessed).toHaveLength(MODELS.length * GUESSED.length * 2);
    expect(untold).toHaveLength(guessed.length);
  });

  test('owes the provider the cost of all charges', async () => {
    const owed = total((await charges()).map(({ cost }) => cost));
    await world.waitUntil(async () => (await journal('payable:openai')) === -owed);
    expect(await journal('cost:openai')).toBe(owed);
  });

  test('explains every settled charge by its usage and the published prices', async () => {
    const facts = await world.listEvents();
    const lists = new Map<string, readonly PriceListLine[]>();
    for (const { type, data } of facts) if (type === 'PriceListPublished') lists.set(data.version, data.lines);
    const settled = facts.filter(({ type }) => type === 'HoldSettled');
    expect(settled.length).toBeGreaterThan(0);
    for (const fact of settled) {
      if (fact.type !== 'HoldSettled') continue;
      const { charge } = fact.data;
      expect(isExplained(charge, lists.get(charge.priceList) ?? [])).toBe(true);
    }
  });

  test('has equal debits and credits, and no held money', async () => {
    await world.waitUntil(async () => (await journal('%')) === 0n);
    expect(await journal('customer:held')).toBe(0n);
  });

  test('leaves the customer the credited amount less the charges', async () => {
    const settled = (await world.listEvents(account)).flatMap(({ type, data }) =>
      type === 'HoldSettled' ? [data.charged] : [],
    );
    const left = money.toJsonAmount(money.parseUsd('10.5'));
    expect(await world.fetchBalance(account)).toBe(money.formatUsd(money.toPicoUsd(BigInt(left) - total(settled))));
    expect(await journal('customer:available')).toBe(-(BigInt(left) - total(settled)));
  });

  test('has a revenue that is the sum of the charges and the overruns', async () => {
    const revenue = -(await journal('revenue:%'));
    const settled = (await world.listEvents(account)).flatMap(({ type, data }) =>
      type === 'HoldSettled' ? [data.charged] : [],
    );
    expect(revenue).toBe(total(settled) + (await journal('overrun')));
  });

  test('has exactly one end for every hold', async () => {
    const facts = await world.listEvents(account);
    const held = facts.flatMap((fact) => (fact.type === 'FundsHeld' ? [fact.data.holdId] : []));
    const ended = facts.flatMap((fact) =>
      fact.type === 'HoldSettled' || fact.type === 'HoldReleased' || fact.type === 'HoldExpired'
        ? [fact.data.holdId]
        : [],
    );
    expect(ended.toSorted()).toEqual(held.toSorted());
    expect(new Set(held).size).toBe(held.length);
  });
});
