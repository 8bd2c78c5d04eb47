import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { decode } from 'light-bolt11-decoder';
import { createStreams } from '#application';
import { toPostings } from '#domain';
import { createRootCause, NO_SNAPSHOTS, parseUsd } from '#kernel';
import { type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
});
afterAll(() => world.close());

interface Invoice {
  readonly invoice_id: string;
  readonly lightning_invoice: string;
  readonly expires_at: number;
}

async function invoiced(amount: number, currency = 'USD'): Promise<{ account: TestAccount; invoice: Invoice }> {
  const account = await world.createAccount();
  return { account, invoice: (await world.post('/topup/create/btc-lightning', { amount, currency }, account)).body };
}

const status = async ({ invoice_id }: Invoice) => (await world.get(`/topup/status/${invoice_id}`)).body;
const settled = (invoice: Invoice) => world.waitUntil(async () => (await status(invoice)).status === 'Settled');
const ofTopup = async ({ invoice_id }: Invoice) =>
  (await world.listEvents()).filter(({ stream }) => stream === `topup-${invoice_id}`).map(({ type }) => type);
const credits = async (account: TestAccount) =>
  (await world.listEvents(account)).filter(({ type }) => type === 'CreditAdded');
const hashOf = ({ lightning_invoice }: Invoice) => {
  const found = decode(lightning_invoice).sections.find(({ name }) => name === 'payment_hash');
  return found && 'value' in found ? String(found.value) : '';
};

describe('a payment that is reversed', () => {
  test('reverses its credit, even below zero; then requests are rejected with 402', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice);
    await settled(invoice);
    expect((await world.sendChat(account)).status).toBe(200);
    const { store, runtime } = world.foundation;
    const { topups } = createStreams(store, NO_SNAPSHOTS, runtime);
    const payment = { backend: 'lnd', id: hashOf(invoice) };
    const at = new Date().toISOString();
    const reversals = [{ id: 'dispute', units: -1_000_000n, why: 'disputed' }];
    const maxAmount = parseUsd('1000');
    const data = {
      payment,
      units: 1_000_000n,
      confirmations: 'final',
      isClaimed: true,
      receivedAt: at,
      reversals,
      maxAmount,
      at,
    } as const;
    await topups.run(invoice.invoice_id, { type: 'RecordPayment', data }, createRootCause('test', 'dispute'));
    await world.waitUntil(async () => (await world.fetchBalance(account)).startsWith('-0.'));
    expect((await world.sendChat(account)).status).toBe(402);
    expect(await status(invoice)).toMatchObject({ status: 'Invalid', amount_paid: 0 });
  });
});

describe('a paid top-up', () => {
  test.each([
    ['USD', 1, '1.05'],
    ['USD', 0.1, '0.105'],
    ['USD', 0.1001, '0.105105'], // 101 satoshis are requested, and the requested amount is credited
    ['SATS', 1000, '1.05'],
    ['SATS', 1_000_000, '1050'],
    ['BTC', 0.0001, '10.5'],
  ])('of %s %d is credited with 5 %% more, as %s USD', async (currency, amount, balance) => {
    const { account, invoice } = await invoiced(amount, currency);
    await world.payInvoice(invoice.lightning_invoice);
    await settled(invoice);
    expect(await world.fetchBalance(account)).toBe(balance);
  });

  test('is New and then Settled, with the credit already in the balance', async () => {
    const { account, invoice } = await invoiced(2);
    expect((await status(invoice)).status).toBe('New');
    await world.payInvoice(invoice.lightning_invoice);
    await settled(invoice);
    expect(await world.fetchBalance(account)).toBe('2.1');
    expect(await status(invoice)).toMatchObject({ status: 'Settled', amount_paid: 0.00002, amount_due: 0, amount: 2 });
  });

  test('appends three events of the top-up, and a credit under the payment hash', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice);
    await settled(invoice);
    expect(await ofTopup(invoice)).toEqual(['InvoiceIssued', 'PaymentReceived', 'TopupCredited']);
    const [credit] = await credits(account);
    expect(credit).toMatchObject({
      data: {
        creditId: `lnd/${hashOf(invoice)}`,
        method: 'btc-lightning',
        amount: '1000000000000',
        bonus: '50000000000',
      },
      metadata: { $correlationId: invoice.invoice_id },
    });
  });

  test('posts the payment, the bonus, and the debt to the customer', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice);
    await settled(invoice);
    const [credit] = await credits(account);
    expect(credit && toPostings(`account-${world.getAccountId(account)}`, credit)).toEqual([
      { account: 'clearing:btc-lightning', customer: null, amount: 1_000_000_000_000n },
      { account: 'bonus:btc-lightning', customer: null, amount: 50_000_000_000n },
      { account: 'customer:available', customer: world.getAccountId(account), amount: -1_050_000_000_000n },
    ]);
  });

  test('can be spent at once', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice);
    await settled(invoice);
    expect((await world.sendChat(account)).status).toBe(200);
  });

  test('cannot be paid again', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice);
    expect((await world.payInvoice(invoice.lightning_invoice)).status).toBe(400);
    await settled(invoice);
    expect(await credits(account)).toHaveLength(1);
  });

  test('that the node reports twice is credited once', async () => {
    const { account, invoice } = await invoiced(1);
    const after = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice, { report: 'twice' });
    await world.payInvoice(after.invoice.lightning_invoice);
    await settled(invoice);
    await settled(after.invoice); // so the second report has been received as well
    expect(await world.fetchBalance(account)).toBe('1.05');
    expect(await ofTopup(invoice)).toEqual(['InvoiceIssued', 'PaymentReceived', 'TopupCredited']);
  });

  test('that the node never reports is still found', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice, { report: 'never' });
    await settled(invoice);
    expect(await world.fetchBalance(account)).toBe('1.05');
  });

  test('that was overpaid is credited in full, and has the bonus up to 1 % above the invoice', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice, { amount_msat: '2500000' });
    await settled(invoice);
    expect(await world.fetchBalance(account)).toBe('2.5505');
    expect(await status(invoice)).toMatchObject({ amount: 1, amount_paid: 0.000025, amount_due: 0 });
  });

  test('of one account does not affect another account', async () => {
    const [paid, open] = [await invoiced(1), await invoiced(1)];
    await world.payInvoice(paid.invoice.lightning_invoice);
    await settled(paid.invoice);
    expect(await world.fetchBalance(open.account)).toBe('0');
    expect((await status(open.invoice)).status).toBe('New');
  });

  test('is credited once if many are paid concurrently', async () => {
    const account = await world.createAccount();
    const invoices: Invoice[] = await Promise.all(
      Array.from(
        { length: 12 },
        async () => (await world.post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, account)).body,
      ),
    );
    await Promise.all(invoices.map((each) => world.payInvoice(each.lightning_invoice, { report: 'twice' })));
    await Promise.all(invoices.map(settled));
    expect(await world.fetchBalance(account)).toBe('12.6');
  });
});

describe('a payment that settles after the invoice expired', () => {
  test('is credited with the requested amount and the bonus if the exchange rate is unchanged', async () => {
    const { account, invoice } = await invoiced(1);
    await world.payInvoice(invoice.lightning_invoice, { late: true, settled_at: invoice.expires_at + 30 });
    await settled(invoice);
    expect(await world.fetchBalance(account)).toBe('1.05');
  });
});
