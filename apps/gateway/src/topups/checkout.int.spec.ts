import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import type { CoinTerms } from '#domain';
import { StoreUnavailableError } from '#kernel';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';
import { type CheckoutView, renderCheckoutPage } from './checkout-page.ts';

const NOW = '2026-11-20T12:00:00.000Z';
const LATER = '2026-11-20T12:10:00.000Z';
const INVOICE = 'lnbcrt10u1pexample';

const { coins } = readPayments();
const coinOf = (code: string) => coins.find((each) => each.code === code) as CoinTerms;

const lightning: CheckoutView = {
  topupId: 'AAAAAAAAAAAAAAAAAAAAAA',
  displayName: 'Bitcoin Lightning',
  requested: { amount: '25', currency: 'USD' },
  coin: coinOf('BTC'),
  units: 25_000_000n,
  paidUnits: 0n,
  destination: { kind: 'bolt11', value: INVOICE },
  expiresAt: LATER,
  status: 'New',
};
const monero: CheckoutView = {
  ...lightning,
  displayName: 'Monero',
  coin: coinOf('XMR'),
  units: 100_000_000_000n,
  destination: { kind: 'address', value: '8AAAAA' },
};

const pageOf = (changes: Partial<CheckoutView>, of = lightning) => renderCheckoutPage({ ...of, ...changes }, NOW);
const EXPIRED = { status: 'Expired', expiresAt: '2026-11-20T11:00:00.000Z' } as const;

describe('the checkout page of a top-up', () => {
  test.each<[state: string, html: string, says: string, pays: boolean, follows: boolean]>([
    ['is new', pageOf({}), 'Waiting for payment', true, true],
    ['has an unconfirmed payment', pageOf({ status: 'Processing' }), 'Payment seen', false, true],
    ['is paid', pageOf({ status: 'Settled', paidUnits: 25_000_000n }), 'The amount is in your balance', false, false],
    ['has expired', pageOf(EXPIRED), 'is still credited, at the exchange rate when it arrives', false, true],
    [
      'was reversed in part',
      pageOf({ status: 'Settled', paidUnits: 15_000_000n }),
      '0.00015 BTC is still credited',
      false,
      false,
    ],
    ['was reversed', pageOf({ status: 'Invalid' }), 'refunded, disputed or reversed', false, false],
    [
      'has an invoice that was paid in part and cannot be paid again',
      pageOf({ paidUnits: 5_000_000n }),
      '0.00005 BTC was received and credited',
      false,
      false,
    ],
    [
      'is paid in part to an address',
      pageOf({ paidUnits: 40_000_000_000n }, monero),
      '0.04 XMR was received and credited. 0.06 XMR is still due',
      true,
      true,
    ],
    [
      'is paid in part to an address, and has expired',
      pageOf({ ...EXPIRED, paidUnits: 40_000_000_000n }, monero),
      'Later payments are credited as well',
      false,
      true,
    ],
  ])('that %s shows its state', (_, html, says, pays, follows) => {
    expect(html).toContain(says);
    expect(html.includes('<svg')).toBe(pays);
    expect(html.includes('data-final="false"')).toBe(follows);
    expect(html.includes('Check for the payment')).toBe(follows); // the way without a script
    expect(html.split('<script>')[0]).not.toMatch(/undefined|NaN|\[object/);
  });

  test('with an invoice shows the invoice as text and as a link to a wallet', () => {
    const html = pageOf({});
    expect(html).toContain('25.00 USD');
    expect(html).toContain('0.00025 BTC');
    expect(html).toContain(`>${INVOICE}</textarea>`);
    expect(html).toContain(`href="lightning:${INVOICE}"`);
    expect(html).toContain('data-seconds="600"');
  });

  test('with an address requests the amount that is still due', () => {
    const html = pageOf({ paidUnits: 40_000_000_000n }, monero);
    expect(html).toContain('href="monero:8AAAAA?tx_amount=0.06"');
    expect(html).toContain('value="0.06"');
  });

  test('with an address on a chain with many assets names the asset', () => {
    const html = pageOf({ coin: coinOf('LBTC'), units: 50_000n }, monero);
    expect(html).toMatch(/href="liquidnetwork:8AAAAA\?amount=0.0005&amp;assetid=6f[0-9a-f]{62}"/);
  });

  test('with a payment page links to that page', () => {
    const destination = { kind: 'page', value: 'https://checkout.example/c/pay/cs_1' } as const;
    const html = pageOf({ destination });
    expect(html).toContain('<a class="button" href="https://checkout.example/c/pay/cs_1">');
    expect(html).not.toContain('<textarea');
  });

  test('escapes the display name, the currency and the destination', () => {
    const nasty = `"><script>alert('x')</script>`;
    const html = pageOf({
      displayName: nasty,
      requested: { amount: '1', currency: nasty },
      destination: { kind: 'address', value: nasty },
    });
    expect(html.match(/<script/g)).toHaveLength(1);
    expect(html).not.toContain('"><script>alert');
  });
});

describe('the route of the page', () => {
  let world: TestWorld;
  let account: TestAccount;
  let answer: TestResponse;
  beforeAll(async () => {
    world = await TestWorld.openWithSagas();
    account = await world.createAccount();
    ({ answer } = await created());
  });
  afterAll(() => world.close());

  async function created() {
    const { body } = await world.post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, account);
    const url = body.checkout_url.slice(world.api.length) as string;
    return { url, invoice: body.lightning_invoice as string, answer: await world.get(url) };
  }

  test('is the checkout_url of an invoice', () => {
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(answer.text).toContain('Waiting for payment');
  });

  test('loads and runs nothing except its own style and script', () => {
    const hash = (tag: string) => {
      const source = answer.text.match(new RegExp(`<${tag}>(.*?)</${tag}>`, 's'))?.[1] ?? '';
      return `'sha256-${createHash('sha256').update(source).digest('base64')}'`;
    };
    expect(answer.headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src ${hash('style')}; script-src ${hash('script')}; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
    );
    expect(answer.text).not.toMatch(/<link|<img|\sstyle=|\son\w+=|\ssrc=|url\(/);
  });

  test('is neither cached nor sent as referrer, and contains no credential of the account', () => {
    const headers = ['cache-control', 'referrer-policy', 'x-content-type-options'];
    expect(headers.map((name) => answer.headers.get(name))).toEqual(['no-store', 'no-referrer', 'nosniff']);
    expect(answer.text).not.toContain(account.creditId);
    expect(answer.text).not.toContain('sk-');
  });

  test('shows that the payment has arrived', async () => {
    const { url, invoice } = await created();
    await world.payInvoice(invoice);
    await world.waitUntil(async () => (await world.get(url)).text.includes('The amount is in your balance'));
  });

  test.each(['AAAAAAAAAAAAAAAAAAAAAA', 'x', "'%20or%201=1"])(
    'responds to an unknown invoice (%s) with a page',
    async (id) => {
      const { status, headers, text } = await world.get(`/topup/checkout/${id}`);
      expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(text).toContain('Invoice not found');
    },
  );

  test('offers a retry while the event store is unavailable', async () => {
    const { url } = await created();
    const away = jest.spyOn(world.foundation.store, 'read').mockImplementation(() => {
      throw new StoreUnavailableError('away');
    });
    const { status, headers, text } = await world.get(url);
    away.mockRestore();
    expect([status, headers.get('retry-after')]).toEqual([503, '1']);
    expect(text).toContain('Try again');
  });
});
