/** LND, and the built program that is paid through it. */
import type { LightningNetwork } from './lightning.ts';
import { type Shop, sleep } from './shop.ts';

const METHOD = 'btc-lightning';
/** A thousand satoshis at the sandbox's rate. */
const USD = 1;
/** With the bonus of 5 %. */
const CREDITED = 1.05;

export async function proveLightning(shop: Shop, network: LightningNetwork): Promise<void> {
  await provePayments(shop, network);
  await proveDeaths(shop, network);
  await proveExpired(shop, network);
}

async function provePayments(shop: Shop, network: LightningNetwork): Promise<void> {
  const exact = await shop.createInvoice(USD, 'USD', METHOD);
  await assertPaid(await network.pay(exact.to));
  await shop.expectStatus('what was asked for', exact, 'Settled', CREDITED);
  expectRejection(shop, 'the same invoice, once more', await network.pay(exact.to));
  await shop.expectUnchanged('the same', exact, 'Settled', CREDITED);

  const overpaid = await shop.createInvoice(USD, 'USD', METHOD);
  await assertPaid(await network.payCustomAmount(overpaid.to, '1500000'));
  await shop.expectStatus('half as much again', overpaid, 'Settled', 1.575);

  const underpaid = await shop.createInvoice(USD, 'USD', METHOD);
  expectRejection(shop, 'less than was asked for', await network.payCustomAmount(underpaid.to, '999000'));
  await shop.expectUnchanged('the same', underpaid, 'New', 0);
  await assertPaid(await network.pay(underpaid.to));
  await shop.expectStatus('the same, paid after all', underpaid, 'Settled', CREDITED);
}

async function proveDeaths(shop: Shop, network: LightningNetwork): Promise<void> {
  const before = await shop.createInvoice(USD, 'USD', METHOD);
  await network.killShop();
  await network.restartShop();
  await assertPaid(await network.pay(before.to));
  await shop.expectStatus('what was asked for before the node was killed', before, 'Settled', CREDITED);
  const unwatched = await shop.createInvoice(USD, 'USD', METHOD);
  await shop.runWithoutPolling(async () => assertPaid(await network.pay(unwatched.to)));
  await shop.expectStatus('what was paid while nobody looked', unwatched, 'Settled', CREDITED);
}

async function proveExpired(shop: Shop, network: LightningNetwork): Promise<void> {
  const expired = await shop.createInvoice(USD, 'USD', `${METHOD}-quick`);
  await sleep(Math.max(0, expired.expiresAt * 1000 - Date.now()) + 2_000);
  expectRejection(shop, 'an invoice that has expired', await network.payCustomAmount(expired.to, '1000000'));
  await shop.expectStatus('the same', expired, 'Expired', 0);
}

function assertPaid(error: string): void {
  if (error !== '') throw new Error(`a payment failed: ${error}`);
}

function expectRejection(shop: Shop, what: string, error: string): void {
  shop.report(what, error !== '', error === '' ? 'is taken' : `is refused (${error})`, 'refused');
}
