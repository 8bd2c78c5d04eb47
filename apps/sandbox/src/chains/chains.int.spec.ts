import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { base58xmr, bech32 } from '@scure/base';
import { startSandbox } from '../sandbox.ts';
import { Chains } from './chain.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

const KEY = { authorization: 'token key' };

async function answered(sent: Promise<Response>) {
  const response = await sent;
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  answered(fetch(sandbox.url + path, { method: 'POST', body: JSON.stringify(body), headers }));
const get = (path: string, headers: Record<string, string>) => answered(fetch(sandbox.url + path, { headers }));

const UNITS = 1_000n;
const sending = (address: string) => ({ outputs: [{ address, units: UNITS }], seenAt: 0 });

describe('an address', () => {
  test.each([
    ['BTC', 'bcrt'],
    ['LTC', 'rltc'],
    ['LBTC', 'ert'],
    ['DOGE', 'dogert'],
  ])('of %s belongs to a test network: %s1…', (coin, prefix) => {
    const address = new Chains().getChain(coin).createAddress();
    expect(bech32.decode(address as `${string}1${string}`)).toMatchObject({ prefix, words: expect.any(Array) });
  });

  test('of XMR is a subaddress on stagenet', () => {
    expect(base58xmr.decode(new Chains().getChain('XMR').createAddress())).toMatchObject({ 0: 36, length: 69 });
  });

  test('that the sandbox has not issued cannot be paid', async () => {
    const { status, body } = await post('/wallet/send', { coin: 'BTC', address: 'bcrt1q', amount: '1' });
    expect([status, body.error]).toEqual([400, expect.stringContaining('"address"')]);
  });
});

describe('a transaction', () => {
  const begun = () => {
    const chain = new Chains().getChain('BTC');
    const address = chain.createAddress();
    return { chain, address, confirmations: (id: string) => chain.countConfirmations(chain.find(id) as never) };
  };

  test('waits, is mined, and gains confirmations', () => {
    const { chain, address, confirmations } = begun();
    const { id } = chain.send(sending(address));
    expect(confirmations(id)).toBe(0);
    chain.mine(1);
    expect(confirmations(id)).toBe(1);
    chain.mine(5);
    expect(confirmations(id)).toBe(6);
    expect(chain.listTransactionsTo(address).map((each) => each.id)).toEqual([id]);
  });

  test('with a low fee is not mined', () => {
    const { chain, address, confirmations } = begun();
    const { id } = chain.send({ ...sending(address), lowFee: true });
    chain.mine(100);
    expect(confirmations(id)).toBe(0);
  });

  test('that was dropped from its block has no confirmations, also after more blocks', () => {
    const { chain, address, confirmations } = begun();
    const transaction = chain.send(sending(address));
    chain.mine(3);
    chain.drop(transaction);
    chain.mine(3);
    expect([confirmations(transaction.id), chain.find(transaction.id)?.isDropped]).toEqual([0, true]);
  });
});

describe('the routes of wallets and miners', () => {
  test.each([
    ['in an unknown coin', { coin: 'btc' }, 'such as BTC'],
    ['an amount that is a number', { amount: 1 }, '"amount"'],
    ['an amount of 0', { amount: '0' }, '"amount"'],
    ['an amount with too many decimals', { amount: '0.000000001' }, '"amount"'],
    ['with an unknown option', { colour: 'red' }, '"colour"'],
    ['with an unknown report mode', { report: 'loud' }, '"report"'],
  ])('do not send %s', async (_what, wrong, says) => {
    const terms = { amount: '1', currency: 'BTC', checkout: { paymentMethods: ['BTC-CHAIN'] } };
    const { id } = (await post('/btcpay/api/v1/stores/sandbox/invoices', terms, KEY)).body;
    const { body } = await get(`/btcpay/api/v1/stores/sandbox/invoices/${id}/payment-methods`, KEY);
    const { destination: address } = (body as unknown as readonly [Record<string, unknown>])[0];
    const answer = await post('/wallet/send', { coin: 'BTC', address, amount: '1', ...wrong });
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(says)]);
  });

  test.each([
    ['/chains/BTC/mine', { blocks: 0 }],
    ['/chains/BTC/undo', { txid: '00' }],
    ['/chains/BTC/burn', {}],
    ['/chains/nothing/mine', {}],
  ])('respond with 400 to %s with %p', async (path, body) => {
    expect((await post(path, body)).status).toBe(400);
  });
});
