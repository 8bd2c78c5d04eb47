import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sampleSize, type TestAccount, type TestResponse, TestWorld } from '#testing';

/** Costs 0.01 USD for each request, whatever its length. */
const FLAT = { model: 'countinghouse/flat' };
const REQUESTS = sampleSize(100, 24);

let world: TestWorld;
let apis: readonly [string, string];
beforeAll(async () => {
  world = await TestWorld.open();
  apis = [world.api, await world.addGateway()];
});
afterAll(() => world.close());

const times = <T>(count: number, ask: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => ask(i)));
const having = (answers: readonly TestResponse[], wanted: number) =>
  answers.filter(({ status }) => status === wanted).length;
const charges = async (account: TestAccount) =>
  (await world.listEvents(account)).filter(({ type }) => type === 'HoldSettled');

describe('concurrent requests to two gateways', () => {
  test.each([
    ['', sampleSize(42, 12), {}],
    [' as a stream', sampleSize(21, 7), { stream: true }],
  ])('are served%s as long as the balance pays for them, and not one more', async (_, afforded, more) => {
    const account = await world.createAccount(afforded / 100);
    const answers = await times(REQUESTS, (i) => world.sendChat(account, '', { ...FLAT, ...more }, apis[i % 2]));
    expect([having(answers, 200), having(answers, 402)]).toEqual([afforded, REQUESTS - afforded]);
    expect(await charges(account)).toHaveLength(afforded);
    expect((await world.post('/credits/balance', undefined, account)).body).toMatchObject({ balance: 0, held_usd: 0 });
  });
});

describe('a key that is revoked on one gateway', () => {
  test('is rejected at once on the other, even under concurrent requests, and pays for nothing more', async () => {
    const account = await world.createAccount(2.1);
    const headers = { 'x-credit-id': account.creditId };
    const { body } = await world.send('POST', '/keys', { headers, body: { name: 'leaked' } });
    const key = { ...account, apiKey: body.data.api_key as string };
    const ask = () => world.sendChat(key, '', FLAT, apis[1]);

    expect((await ask()).status).toBe(200);
    const before = times(REQUESTS, ask);
    expect((await world.send('DELETE', `/keys/${body.data._id}`, { headers, api: apis[0] })).status).toBe(200);
    const after = await times(REQUESTS, ask);
    expect(having(after, 401)).toBe(REQUESTS);

    const served = having(await before, 200);
    expect(having(await before, 401)).toBe(REQUESTS - served);
    expect(await charges(account)).toHaveLength(1 + served);
  });
});
