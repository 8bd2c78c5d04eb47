/** Payments through a real LND node. */
import type { LightningNetwork } from './lightning.ts';
import { type Shop, sleep } from './shop.ts';

const METHOD = 'btc-lightning';
/** 1,000 satoshis at the sandbox's exchange rate. */
const USD = 1;
/** The amount with the bonus of 5 %. */
const CREDITED = 1.05;

export async function proveLightning(shop: Shop, network: LightningNetwork): Promise<void> {
  await provePayments(shop, network);
  await proveDeaths(shop, network);
  await proveExpired(shop, network);
}

async function provePayments(shop: Shop, network: LightningNetwork): Promise<void> {
  const exact = await shop.createInvoice(USD, 'USD', METHOD);
  await assertPaid(await network.pay(exact.to));
  await shop.expectStatus('the requested amount', exact, 'Settled', CREDITED);
  expectRejection(shop, 'a second payment of the same invoice', await network.pay(exact.to));
  await shop.expectUnchanged('the invoice after that', exact, 'Settled', CREDITED);

  const overpaid = await shop.createInvoice(USD, 'USD', METHOD);
  await assertPaid(await network.payCustomAmount(overpaid.to, '1500000'));
  await shop.expectStatus('150 % of the requested amount', overpaid, 'Settled', 1.575);

  const underpaid = await shop.createInvoice(USD, 'USD', METHOD);
  expectRejection(shop, 'less than the requested amount', await network.payCustomAmount(underpaid.to, '999000'));
  await shop.expectUnchanged('the invoice after that', underpaid, 'New', 0);
  await assertPaid(await network.pay(underpaid.to));
  await shop.expectStatus('the same invoice, paid in full', underpaid, 'Settled', CREDITED);
}

async function proveDeaths(shop: Shop, network: LightningNetwork): Promise<void> {
  const before = await shop.createInvoice(USD, 'USD', METHOD);
  await network.killShop();
  await network.restartShop();
  await assertPaid(await network.pay(before.to));
  await shop.expectStatus('an invoice that was created before the node was killed', before, 'Settled', CREDITED);
  const unwatched = await shop.createInvoice(USD, 'USD', METHOD);
  await shop.runWithoutPolling(async () => assertPaid(await network.pay(unwatched.to)));
  await shop.expectStatus('a payment while the sagas were down', unwatched, 'Settled', CREDITED);
}

async function proveExpired(shop: Shop, network: LightningNetwork): Promise<void> {
  const expired = await shop.createInvoice(USD, 'USD', `${METHOD}-quick`);
  await sleep(Math.max(0, expired.expiresAt * 1000 - Date.now()) + 2_000);
  expectRejection(shop, 'a payment of an expired invoice', await network.payCustomAmount(expired.to, '1000000'));
  await shop.expectStatus('the expired invoice', expired, 'Expired', 0);
}

function assertPaid(error: string): void {
  if (error !== '') throw new Error(`a payment failed: ${error}`);
}

function expectRejection(shop: Shop, what: string, error: string): void {
  shop.report(what, error !== '', error === '' ? 'accepted' : `rejected (${error})`, 'rejected');
}
