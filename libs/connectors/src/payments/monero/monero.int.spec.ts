import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { MoneroBackend } from '#connectors';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { respondWithJson, StubServer } from '../../../../testing/src/servers/stub-server.ts';

const TXID = 'ab'.repeat(32);
const NOW = Date.parse('2026-11-22T12:00:00Z');
const SECONDS = NOW / 1000;
const ADDRESS = '87aLFR6q88MWxEiU9VttCt7AWRfGKRB1e9z63YJpFzLYCiHeHfntyVcHnBeAU7qmFTHqaWukK8dZzUm61W1mLA5VKK2E72h';
const REFERENCE = `7:${SECONDS}:200:topup:${ADDRESS.slice(-12)}`;

let opened: AsyncDisposableStack;
beforeEach(() => {
  opened = new AsyncDisposableStack();
});
afterEach(() => opened.disposeAsync());

function connect(url: string, login?: string, now?: () => number): MoneroBackend {
  const wallet = new MoneroBackend({ moneroUrl: url, moneroLogin: login }, now);
  opened.defer(() => wallet.close());
  return wallet;
}

const request = (wallet: MoneroBackend, topupId = 'topup') =>
  wallet.createPayment({
    topupId,
    coin: { code: 'XMR', name: 'Monero', decimals: 12, step: 1, currencies: {} },
    kind: 'address',
    units: 1n,
    memo: '',
    expirySeconds: 900,
    confirmations: 10,
  });

describe('a Monero wallet', () => {
  async function start(login = 'sandbox:sandbox') {
    const sandbox = await startSandbox({ port: 0 });
    opened.defer(() => sandbox.close());
    const post = async (path: string, body: object) =>
      (await (await fetch(sandbox.url + path, { method: 'POST', body: JSON.stringify(body) })).json()) as {
        txid: string;
      };
    return {
      wallet: connect(`${sandbox.url}/monero`, login),
      pay: (address: string, amount: string, more: object = {}) =>
        post('/wallet/send', { coin: 'XMR', address, amount, ...more }),
      mine: (blocks: number) => post('/chains/XMR/mine', { blocks }),
      undo: (txid: string) => post('/chains/XMR/undo', { txid }),
    };
  }

  test('creates an address for each top-up, and finds its payments with their confirmations', async () => {
    const { wallet, pay, mine } = await start();
    const [one, two] = [await request(wallet, 'one'), await request(wallet, 'two')];
    const { txid } = await pay(one.destination.value, '9007.199254740993');
    await pay(two.destination.value, '0.000000000001');
    const first = { reference: one.reference, id: `${txid}/0/1`, units: 9_007_199_254_740_993n };
    expect(await wallet.fetchPayments([one.reference])).toMatchObject([{ ...first, confirmations: 0 }]);
    await mine(3);
    const both = await wallet.fetchPayments([one.reference, two.reference]);
    expect(both).toMatchObject([
      { ...first, confirmations: 3 },
      { reference: two.reference, units: 1n, confirmations: 3 },
    ]);
    expect(await Promise.all([wallet.fetchPayments([two.reference]), wallet.fetchPayments([one.reference])])).toEqual([
      [both[1]],
      [both[0]],
    ]);
  });

  test('returns no payments for an empty list of references, for which Monero would return all transfers', async () => {
    const { wallet } = await start();
    expect(await wallet.fetchPayments([])).toEqual([]);
  });

  test('does not report a payment that the payer has locked until it can be spent', async () => {
    const { wallet, pay, mine } = await start();
    const made = await request(wallet);
    await pay(made.destination.value, '1', { unlock_height: 150 });
    expect(await wallet.fetchPayments([made.reference])).toEqual([]);
    await mine(20);
    expect(await wallet.fetchPayments([made.reference])).toEqual([]);
    await mine(40);
    expect(await wallet.fetchPayments([made.reference])).toMatchObject([
      { units: 1_000_000_000_000n, confirmations: 60 },
    ]);
  });

  test('reports a payment as lost when it has been missing for ten blocks', async () => {
    const { wallet, pay, mine, undo } = await start();
    const made = await request(wallet);
    const { txid } = await pay(made.destination.value, '1');
    await mine(12);
    const id = `${txid}/0/1`;
    expect(await wallet.fetchPayments([made.reference], [id])).toMatchObject([{ id, confirmations: 12 }]);
    await undo(txid);
    expect(await wallet.fetchPayments([made.reference], [id])).toEqual([]);
    await mine(9);
    expect(await wallet.fetchPayments([made.reference], [id])).toEqual([]);
    await mine(1);
    const lost = { reference: made.reference, id, units: 0n, confirmations: 'lost' };
    expect(await wallet.fetchPayments([made.reference], [id])).toMatchObject([lost]);
    expect(await wallet.fetchPayments([made.reference], [id])).toMatchObject([lost]);
  });

  test.each([['sandbox:wrong'], ['sandbox:'], [undefined]])('rejects the login %p', async (login) => {
    const { wallet } = await start();
    await request(wallet);
    const { wallet: other } = await start(login ?? '');
    await expect(request(other)).rejects.toMatchObject({
      message: 'The Monero wallet does not accept the login',
      isCredentialRejected: true,
    });
  });
});

/** A transfer in the format of Monero 0.18. */
const transfer = (more: object = {}) => ({
  address: '8…',
  amount: 5,
  amounts: [2, 3],
  confirmations: 10,
  double_spend_seen: false,
  height: 100,
  locked: false,
  subaddr_index: { major: 0, minor: 7 },
  timestamp: SECONDS,
  txid: TXID,
  type: 'in',
  unlock_time: 0,
  ...more,
});

describe('a Monero wallet with prepared responses', () => {
  let server: StubServer;
  let results: Record<string, unknown>;

  async function start(more: Record<string, unknown> = {}): Promise<MoneroBackend> {
    const own = new StubServer();
    server = own;
    opened.defer(() => own.close());
    results = {
      get_height: { height: 200 },
      get_address: { addresses: [{ address: ADDRESS, address_index: 7, label: 'topup' }] },
      ...more,
    };
    server.handler = (response, asked, body) => {
      const { method } = JSON.parse(body) as { method: string };
      const answer = results[method] ?? { error: { code: -32601 } };
      const whole = Object.hasOwn(answer as object, 'error') ? answer : { result: answer };
      respondWithJson({ id: '0', jsonrpc: '2.0', ...(whole as object) })(response, asked, body);
    };
    return connect(await server.listen(), 'user:hush', () => NOW);
  }

  test('must have stored an address before the address is issued', async () => {
    const made = { address: ADDRESS, address_index: 7 };
    const wallet = await start({ create_address: made, store: { error: { code: -7, message: 'no' } } });
    await expect(request(wallet)).rejects.toThrow('it was started with --restricted-rpc');
    results.store = {};
    expect(await request(wallet)).toEqual({ reference: REFERENCE, destination: { kind: 'address', value: ADDRESS } });
    expect(server.requests.map(({ body }) => JSON.parse(body).method)).toEqual([
      'create_address',
      'store',
      'create_address',
      'store',
      'get_height',
    ]);
  });

  test.each([{}, { address: '8…' }, { address: 8, address_index: 7 }, { address: '4…', address_index: 0 }])(
    'fails to create a payment with the address %j',
    async (made) => {
      const wallet = await start({ create_address: made, store: {} });
      await expect(request(wallet)).rejects.toMatchObject({ code: 'upstream_error' });
    },
  );

  test('reports one payment for a transaction that it lists both in a block and in the pool', async () => {
    const wallet = await start({
      get_transfers: { in: [transfer()], pool: [transfer({ type: 'pool', confirmations: undefined })] },
    });
    expect(await wallet.fetchPayments([REFERENCE])).toMatchObject([
      { id: `${TXID}/0/7`, units: 5n, confirmations: 10 },
    ]);
  });

  test.each([
    ['before the address was issued', { timestamp: SECONDS - 3 * 3600 }],
    ['with a competing transaction', { type: 'pool', double_spend_seen: true }],
    ['that is locked for long', { locked: true, unlock_time: 500_000 }],
    ['in the pool without double_spend_seen', { type: 'pool', double_spend_seen: undefined }],
  ])('has no payment for a transfer %s', async (_, more) => {
    const wallet = await start({ get_transfers: { in: [transfer(more)] } });
    expect(await wallet.fetchPayments([REFERENCE])).toEqual([]);
  });

  test('has no payment for a top-up if the number of its address now belongs to another top-up', async () => {
    const wallet = await start({ get_transfers: { in: [transfer()] } });
    const other = `7:${SECONDS - 3600}:190:other:${ADDRESS.slice(-12)}`;
    expect(await wallet.fetchPayments([other, REFERENCE])).toMatchObject([{ reference: REFERENCE }]);
    results.get_address = { addresses: [{ address: ADDRESS, address_index: 7, label: '' }] }; // restored from its seed
    expect(await wallet.fetchPayments([REFERENCE])).toHaveLength(1);
  });

  test('has no payment for an address that another wallet has issued', async () => {
    const wallet = await start({ get_transfers: { in: [transfer()] } });
    results.get_address = { addresses: [{ address: `${ADDRESS.slice(0, -1)}i`, address_index: 7, label: '' }] };
    expect(await wallet.fetchPayments([REFERENCE])).toEqual([]);
    results.get_address = { addresses: 'none' };
    expect(await wallet.fetchPayments([REFERENCE])).toEqual([]);
  });

  test.each([
    ['without a transaction', { txid: undefined }],
    ['with an invalid transaction id', { txid: 'ab' }],
    ['to another account', { subaddr_index: { major: 1, minor: 7 } }],
    ['without an address', { subaddr_index: undefined }],
    ['without an amount', { amount: undefined }],
    ['with a negative amount', { amount: -1 }],
    ['with a fractional amount', { amount: 0.5 }],
    ['with an amount as a string', { amount: '5' }],
    ['without a time', { timestamp: undefined }],
    ['with negative confirmations', { confirmations: -1 }],
    ['with invalid confirmations', { confirmations: 'many' }],
  ])('fails for a transfer %s', async (_, more) => {
    const wallet = await start({ get_transfers: { in: [transfer(more)] } });
    await expect(wallet.fetchPayments([REFERENCE])).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test.each([
    ['two amounts of one payment', { in: [transfer(), transfer({ amount: 6 })] }],
    ['an object instead of a list', { in: {} }],
    ['null in a list', { in: [null] }],
  ])('fails for %s', async (_, transfers) => {
    const wallet = await start({ get_transfers: transfers });
    await expect(wallet.fetchPayments([REFERENCE])).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test('fails while it rescans the chain, even for a gateway that has just started', async () => {
    const wallet = await start({ get_transfers: { in: [transfer()] } });
    await wallet.fetchPayments([REFERENCE], [`${TXID}/0/7`]);
    Object.assign(results, { get_height: { height: 20 }, get_transfers: {} });
    await expect(wallet.fetchPayments([REFERENCE], [`${TXID}/0/7`])).rejects.toThrow('has decreased');
    const begun = await start({ get_height: { height: 20 }, get_transfers: {} });
    await expect(begun.fetchPayments([REFERENCE], [`${TXID}/0/7`])).rejects.toThrow('has decreased');
    results.get_height = { height: 'high' };
    await expect(begun.fetchPayments([REFERENCE])).rejects.toThrow('does not know the height');
  });

  test.each([
    ['another wallet has issued the address', { address: ADDRESS.replace(/.$/, 'i'), address_index: 7, label: '' }],
    ['another top-up has the address', { address: ADDRESS, address_index: 7, label: 'other' }],
  ])('reports no lost payment if %s', async (_, address) => {
    const wallet = await start({ get_transfers: {}, get_address: { addresses: [address] } });
    for (let height = 200; height <= 230; height += 10) {
      results.get_height = { height };
      expect(await wallet.fetchPayments([REFERENCE], [`${TXID}/0/7`])).toEqual([]);
    }
  });

  test('reports the payments of other addresses if the response for one address is too large', async () => {
    const wallet = await start();
    const { handler: answer } = server;
    server.handler = (response, asked, body) => {
      const { method, params } = JSON.parse(body) as { method: string; params: { subaddr_indices?: number[] } };
      if (method !== 'get_transfers') return answer(response, asked, body);
      const isFlooded = params.subaddr_indices?.includes(8);
      const answered = isFlooded ? ' '.repeat(17 * 1024 * 1024) : JSON.stringify({ result: { in: [transfer()] } });
      return void response.end(answered);
    };
    const flooded = `8:${SECONDS}:200:flooded:x`;
    await expect(wallet.fetchPayments([flooded])).rejects.toThrow('The Monero wallet sent too many bytes');
    expect(await wallet.fetchPayments([flooded, REFERENCE])).toMatchObject([{ reference: REFERENCE }]);
  });

  test.each([
    [-13, 'no wallet is open'],
    [-15, 'it does not have an address that was issued'],
    [-38, 'it cannot reach its node'],
    [-1, 'with code -1'],
    ['hush', 'with code NaN'],
  ])('fails for the error %p with its code or meaning, but without its message', async (code, why) => {
    const wallet = await start({ get_address: { error: { code, message: 'hush' } } });
    const failed = wallet.fetchPayments([REFERENCE]);
    await expect(failed).rejects.toThrow(why);
    await expect(failed).rejects.not.toThrow('hush');
  });
});
