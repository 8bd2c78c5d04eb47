import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { extendDelay, extendTimeouts, formatTotalCost, isEstimated, listCharges, TestWorld, timeOut } from '#testing';

const BANANA = 'google/nano-banana-2';
const GPT = 'openai/gpt-image-1-mini';
/** A job waits in the queue for the first half of its latency, and is in progress for the other half. */
const LATENCY_MS = 60_000;

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open({ REFUSED_PROMPTS_PER_HOUR: '3' });
});
afterAll(() => world.close());

const NOTHING = '0.000000000000';

/** The number of polls of jobs that the provider has received. */
const countPolls = () => world.traffic.requests.filter((request) => /^GET \/fal\/.+\/status/.test(request)).length;

/** Sends one request of a new account, and returns the response and its outcome. */
async function exchange(directive: string, more: object = {}) {
  const by = await world.createAccount(1.05);
  await world.bill.clear();
  const body = { model: BANANA, prompt: `A coin [[sandbox ${directive}]]`, provider: { only: ['fal'] }, ...more };
  const answer = await world.post('/v1/images/generations', body, by);
  return { answer, ...(await outcomeFor(by)) };
}

/** Returns what happened after the hold of an account: `owed` is the recorded cost, `invoiced` the bill. */
async function outcomeFor(by: Awaited<ReturnType<TestWorld['createAccount']>>) {
  const facts = await world.listEvents(by);
  const held = facts.findIndex(({ type }) => type === 'FundsHeld');
  const [record] = (await world.get('/queries/history', by)).body.data;
  const { balance, held_usd } = (await world.post('/credits/balance', undefined, by)).body;
  expect(held_usd).toBe(0);
  const charges = listCharges(facts);
  return {
    types: facts.slice(held + 1).map(({ type }) => type),
    charges,
    record,
    spent: (1.05 - balance).toFixed(12),
    owed: formatTotalCost(charges),
    invoiced: (await world.bill.fetchTotal()).total_usd,
  };
}

const RELEASED = ['HoldReleased'];
const ABSORBED = ['HoldReleased', 'ChargeAbsorbed'];

describe('a failed generation of images', () => {
  test.each<[string, number, string, string[], string]>([
    ['fault=400', 400, 'invalid_request', RELEASED, '0'],
    ['fault=429', 429, 'rate_limit_exceeded', RELEASED, '0'],
    ['fault=500', 502, 'upstream_error', RELEASED, '0'],
    ['fault=overloaded', 503, 'upstream_unavailable', RELEASED, '0'],
    ['fault=error', 502, 'upstream_error', RELEASED, '0'],
    ['fault=policy', 400, 'content_policy_violation', RELEASED, '0'],
    ['fault=lost', 503, 'upstream_unavailable', ABSORBED, '0.08'],
    ['fault=html', 502, 'upstream_error', ABSORBED, '0.08'],
    ['fault=disguised_svg', 502, 'upstream_error', ABSORBED, '0.08'],
    ['fault=disguised_exe', 502, 'upstream_error', ABSORBED, '0.08'],
    ['fault=expired', 502, 'upstream_error', ABSORBED, '0.08'],
    ['fault=truncated', 502, 'upstream_error', ABSORBED, '0.08'],
    ['fault=broken', 502, 'upstream_error', ABSORBED, '0.08'],
    ['fault=too_large', 502, 'upstream_error', ABSORBED, '0.08'],
  ])(
    'returns for %s the status %d and the code %s, and costs the customer nothing',
    async (directive, status, code, types, cost) => {
      const outcome = await exchange(directive);
      const { answer, record } = outcome;
      expect([answer.status, answer.body.error.code]).toEqual([status, code]);
      expect(outcome.types).toEqual(types);
      expect(record).toMatchObject({ query_type: 'image_generation', model: BANANA, price_in_usd: 0, output_count: 0 });
      expect([outcome.spent, outcome.owed, outcome.invoiced]).toEqual([NOTHING, cost, cost]);
    },
  );

  test.each<[string, string, number, boolean]>([
    ['google', 'policy_billed', 400, true],
    ['google', 'fewer', 502, true],
    ['google', 'html', 502, true],
    ['google', 'truncated', 502, true],
    ['google', 'malformed', 502, false],
    ['google', 'lost', 503, false],
    ['openai', 'policy', 400, true],
    ['openai', 'disguised_exe', 502, true],
    ['openai', 'truncated', 502, true],
    ['openai', 'malformed', 502, false],
    ['openai', 'lost', 503, false],
  ])('costs the customer nothing at %s, which bills tokens (%s)', async (provider, fault, status, known) => {
    const model = provider === 'google' ? BANANA : GPT;
    const outcome = await exchange(`fault=${fault}`, { model, provider: { only: [provider] } });
    expect([outcome.answer.status, outcome.spent]).toEqual([status, NOTHING]);
    expect(outcome.charges.some(isEstimated)).toBe(!known);
    if (known) expect(outcome.owed).toBe(outcome.invoiced);
    else expect(Number(outcome.owed)).toBeGreaterThan(Number(outcome.invoiced));
  });

  test('makes the operator absorb an estimated cost if it is unknown whether an image was generated', async () => {
    const { answer, types, charges, spent, owed } = await exchange('fault=refuse');
    expect([answer.status, types, spent, owed]).toEqual([503, ABSORBED, NOTHING, '0.08']);
    expect(charges.map(isEstimated)).toEqual([true]);
  });

  test('is cancelled at the provider after the timeout, and costs nothing', async () => {
    const queue = extendDelay(LATENCY_MS / 2);
    const before = countPolls();
    const { answer, types, spent, owed, invoiced } = await timeOut(
      world,
      () => exchange(`latency=${LATENCY_MS}`),
      () => countPolls() > before,
    );
    queue.end();
    expect([answer.status, types, spent, owed, invoiced]).toEqual([504, RELEASED, NOTHING, '0', '0']);
  });
});

describe('a successful generation of images', () => {
  test('is charged once after retries', async () => {
    const { answer, types, spent, owed, invoiced } = await exchange('id=again fault=500 fault_times=2');
    expect([answer.status, types, spent]).toEqual([200, ['HoldSettled'], '0.092000000000']);
    expect([owed, invoiced]).toEqual(['0.08', '0.08']);
  });

  test('has the listed price and an estimated cost if the provider reports no tokens', async () => {
    for (const [model, provider, price] of [
      [BANANA, 'google', '0.092000000000'],
      [GPT, 'openai', '0.012650000000'],
    ] as const) {
      const { answer, charges, spent } = await exchange('fault=no_usage', { model, provider: { only: [provider] } });
      expect([answer.status, charges.map(isEstimated), spent]).toEqual([200, [true], price]);
    }
  });

  test('charges only the images that were delivered', async () => {
    const { answer, record, spent, owed, invoiced } = await exchange('fault=fewer', { n: 2 });
    expect([answer.status, answer.body.data.length, answer.body.cost, spent]).toEqual([
      200,
      1,
      0.092,
      '0.092000000000',
    ]);
    expect(record).toMatchObject({ price_in_usd: 0.092, output_count: 1 });
    expect([owed, invoiced]).toEqual(['0.08', '0.08']);
  });

  test('costs the listed price after many polls of the queue', async () => {
    const { answer, spent } = await exchange('latency=900');
    expect([answer.status, spent]).toEqual([200, '0.092000000000']);
  });
});

describe('a client that has disconnected', () => {
  /** Sends a request and disconnects. Then the drain timeout ends, once `due` resolves and the job was polled. */
  async function leaves(directive: string, due?: Promise<unknown>) {
    const before = countPolls();
    const drain = extendTimeouts(world.foundation.settings.drainTimeoutMs);
    const by = await world.createAccount(1.05);
    await world.bill.clear();
    const body = JSON.stringify({ model: BANANA, prompt: `[[sandbox ${directive}]]`, provider: { only: ['fal'] } });
    const headers = { authorization: `Bearer ${by.apiKey}`, 'content-type': 'application/json' };
    const leave = new AbortController();
    const response = fetch(`${world.api}/v1/images/generations`, {
      method: 'POST',
      headers,
      body,
      signal: leave.signal,
    });
    await world.waitUntil(async () => (await world.listEvents(by)).some(({ type }) => type === 'FundsHeld'));
    leave.abort();
    await expect(response).rejects.toThrow();
    if (due) {
      await Promise.all([drain.started, due, world.waitUntil(() => countPolls() > before)]);
      drain.end();
    }
    const ends = new Set(['HoldSettled', 'HoldReleased']);
    await world.waitUntil(async () => (await world.listEvents(by)).some(({ type }) => ends.has(type)));
    drain.end();
    return by;
  }

  test('pays for images that are generated within the drain timeout', async () => {
    const { types, spent, owed, invoiced } = await outcomeFor(await leaves('latency=100'));
    expect([types, spent, owed, invoiced]).toEqual([['HoldSettled'], '0.092000000000', '0.08', '0.08']);
  });

  test('does not pay for images whose job is still queued at the drain timeout, and the job is cancelled', async () => {
    const queue = extendDelay(LATENCY_MS / 2);
    const by = await leaves(`latency=${LATENCY_MS}`, queue.started);
    queue.end();
    const { types, spent, owed, invoiced } = await outcomeFor(by);
    expect([types, spent, owed, invoiced]).toEqual([RELEASED, NOTHING, '0', '0']);
  });

  test('does not pay for images in progress at the drain timeout; the operator absorbs the cost', async () => {
    const generation = extendDelay(LATENCY_MS / 2);
    const queue = extendDelay(LATENCY_MS / 2);
    const leaving = leaves(`latency=${LATENCY_MS}`, generation.started);
    await queue.started;
    queue.end();
    const by = await leaving;
    generation.end();
    await world.waitUntil(async () => (await world.bill.fetchTotal()).lines > 0);
    const { types, spent, owed, invoiced } = await outcomeFor(by);
    expect([types, spent, owed, invoiced]).toEqual([ABSORBED, NOTHING, '0.08', '0.08']);
  });
});

test('rejects an account with 429 after too many rejected prompts', async () => {
  const by = await world.createAccount(1.05);
  const ask = (prompt: string) =>
    world.post('/v1/images/generations', { model: BANANA, prompt, provider: { only: ['fal'] } }, by);
  for (let i = 0; i < 3; i++) expect((await ask('[[sandbox fault=policy]]')).status).toBe(400);
  const { status, headers, body } = await ask('A coin');
  expect([status, body.error.type]).toEqual([429, 'rate_limit_error']);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(3_500);
  const other = await world.createAccount(1.05);
  expect((await world.post('/v1/images/generations', { model: BANANA, prompt: 'A coin' }, other)).status).toBe(200);
});

test('rejects a request for URLs after images could not be stored, but serves one for base64', async () => {
  const files = path.join(world.foundation.settings.dataDir, 'files');
  await rename(files, `${files}.away`).catch(() => {}); // the directory may not exist yet
  await writeFile(files, 'no directory');
  const [first, second] = [await exchange('tokens=1'), await exchange('tokens=1')];
  for (const { answer } of [first, second]) {
    expect([answer.status, answer.body.error.code]).toEqual([503, 'upstream_unavailable']);
    expect(answer.headers.get('retry-after')).toBe('30');
  }
  expect([first.owed, first.invoiced, first.spent]).toEqual(['0.08', '0.08', NOTHING]);
  expect(second.types).not.toContain('FundsHeld');
  expect([second.invoiced, second.spent]).toEqual(['0', NOTHING]);
  expect((await exchange('tokens=1', { response_format: 'b64_json' })).answer.status).toBe(200);
  await rm(files);
  await rename(`${files}.away`, files).catch(() => {});
});
