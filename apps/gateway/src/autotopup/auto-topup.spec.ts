/** Automatic top-up with everything there is: gateway, sagas, a relay and wallets. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type TestAccount, World } from '#testing';

let world: World;
beforeAll(async () => {
  world = await World.open();
});
afterAll(() => world.close());

interface Wallet {
  readonly id: string;
  readonly nwc_url: string;
}

async function sandbox(method: string, route: string, body?: object) {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(world.sandbox + route, {
    method,
    headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return (await answer.json()) as never;
}

const wallet = (options: object = {}): Promise<Wallet> => sandbox('POST', '/nwc/wallets', options);
const payments = async ({ id }: Wallet): Promise<number> =>
  ((await sandbox('GET', `/nwc/wallets/${id}`)) as { payments: object[] }).payments.length;
const connect = (account: TestAccount, nwc_url: string, more: object = {}) =>
  world.post('/nwc-auto-topup/connect', { nwc_url, ...more }, account);
const state = async (account: TestAccount) => (await world.get('/nwc-auto-topup', account)).body;

test('an account without a wallet has the same fields, and no data', async () => {
  const account = await world.account();
  expect(await state(account)).toMatchObject({ status: 'success', connected: false, nwc_url: null, data: null });
});

test('a wallet that pays funds the account at once, with the bonus of Lightning, once', async () => {
  const account = await world.account();
  const paying = await wallet();
  const connected = await connect(account, paying.nwc_url);
  expect(connected.status).toBe(200);
  expect(connected.body).toMatchObject({ connected: true, threshold_usd: 10, topup_amount_usd: 10 });
  await world.until(async () => (await state(account)).last_topup_at !== null);
  expect([await world.balance(account), await payments(paying)]).toEqual(['10.5', 1]);
  const shown = await state(account);
  expect(shown.nwc_url).toMatch(new RegExp(`^nostr\\+walletconnect://${paying.id}\\?relay=.*&secret=\\*\\*\\*$`));
  expect(shown).toMatchObject({ state: 'idle', last_error: null, last_attempt: { state: 'paid', requests: 1 } });
  expect(shown.data).toMatchObject({ connected: true, nwc_url: shown.nwc_url });
});
