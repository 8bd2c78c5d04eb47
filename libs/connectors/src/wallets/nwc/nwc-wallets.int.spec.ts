/** Wallets over the relay of the sandbox, with the unmodified wallet service of Alby's SDK. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { WalletResponse } from '#application';
import { NwcWallets } from '#connectors';
import { waitUntil } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let wallets: NwcWallets;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  wallets = new NwcWallets({ allowedRelays: [`${sandbox.url.replace('http', 'ws')}/relay`, 'ws://127.0.0.1:1'] });
});
afterAll(async () => {
  await wallets.close();
  await sandbox.close();
});

async function call(method: string, path: string, body?: object) {
  const headers = { 'content-type': 'application/json', 'grpc-metadata-macaroon': '00' };
  const answer = await fetch(sandbox.url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  return (await answer.json()) as never as Record<string, string> & { payments: readonly object[]; requests: number };
}

const make = (options: object = {}) => call('POST', '/nwc/wallets', options);
const invoice = async () =>
  (await call('POST', '/lnd/v1/invoices', { value: '1000', expiry: '900' })).payment_request as string;

async function answerTo(options: object): Promise<{ answer: WalletResponse; id: string }> {
  const { nwc_url = '', id = '' } = await make(options);
  const wallet = await wallets.connect(nwc_url);
  const bolt11 = await invoice();
  const answer = await new Promise<WalletResponse>((resolve, reject) => {
    wallets.pay(wallet, bolt11, resolve).catch(reject);
  });
  return { answer, id };
}

describe('a wallet', () => {
  test.each(['nip44_v2', 'nip04'])(
    'is used with the encryption that it supports (%s), and pays',
    async (encryption) => {
      const { nwc_url = '' } = await make({ encryption });
      expect(await wallets.connect(nwc_url)).toMatchObject({ encryption });
      const { answer, id } = await answerTo({ encryption });
      expect(answer).toEqual({ code: 'PAID' });
      expect((await call('GET', `/nwc/wallets/${id}`)).payments).toHaveLength(1);
    },
  );

  test('is reached through the only one of its relays that works', async () => {
    const { nwc_url = '', id = '' } = await make();
    const two = nwc_url.replace('?', `?relay=${encodeURIComponent('ws://127.0.0.1:1/')}&`);
    const wallet = await wallets.connect(two);
    expect(wallet.relays).toHaveLength(2);
    await wallets.pay(wallet, await invoice(), () => {});
    await waitUntil(async () => (await call('GET', `/nwc/wallets/${id}`)).payments.length === 1);
  });

  test('rejects a payment with a reason', async () => {
    expect((await answerTo({ mode: 'quota' })).answer).toEqual({
      code: 'QUOTA_EXCEEDED',
      why: 'The budget of this connection is used up',
    });
  });

  test('cannot be impersonated by responses with forged signatures', async () => {
    expect((await answerTo({ mode: 'forged', delay_ms: 0 })).answer).toEqual({ code: 'PAID' });
  });

  test('is rejected with a reason if it is unknown or does not support payment requests', async () => {
    const { nwc_url = '' } = await make({ mode: 'no pay_invoice' });
    await expect(wallets.connect(nwc_url)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('pay_invoice'),
    });
    const unknown = nwc_url.replace(
      /\/\/[0-9a-f]{64}/,
      `//${'79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'}`,
    );
    await expect(wallets.connect(unknown)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('have no information'),
    });
  });

  test('makes the payment fail if no relay confirms the request, which may have arrived anyway', async () => {
    const { nwc_url = '' } = await make({ mode: 'drops' });
    const wallet = await wallets.connect(nwc_url);
    await expect(wallets.pay(wallet, await invoice(), () => {})).rejects.toThrow('no relay has confirmed');
  });
});
