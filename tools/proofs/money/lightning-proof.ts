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
  const exact = await shop.invoice(USD, 'USD', METHOD);
  await mustPay(await network.pay(exact.to));
  await shop.becomes('what was asked for', exact, 'Settled', CREDITED);
  refused(shop, 'the same invoice, once more', await network.pay(exact.to));
  await shop.stays('the same', exact, 'Settled', CREDITED);

  const more = await shop.invoice(USD, 'USD', METHOD);
  await mustPay(await network.payInstead(more.to, '1500000'));
  await shop.becomes('half as much again', more, 'Settled', 1.575);

  const less = await shop.invoice(USD, 'USD', METHOD);
  refused(shop, 'less than was asked for', await network.payInstead(less.to, '999000'));
  await shop.stays('the same', less, 'New', 0);
  await mustPay(await network.pay(less.to));
  await shop.becomes('the same, paid after all', less, 'Settled', CREDITED);
}

async function proveDeaths(shop: Shop, network: LightningNetwork): Promise<void> {
  const before = await shop.invoice(USD, 'USD', METHOD);
  await network.killShop();
  await network.restartShop();
  await mustPay(await network.pay(before.to));
  await shop.becomes('what was asked for before the node was killed', before, 'Settled', CREDITED);
  const unwatched = await shop.invoice(USD, 'USD', METHOD);
  await shop.whileNobodyLooks(async () => mustPay(await network.pay(unwatched.to)));
  await shop.becomes('what was paid while nobody looked', unwatched, 'Settled', CREDITED);
}

async function proveExpired(shop: Shop, network: LightningNetwork): Promise<void> {
  const expired = await shop.invoice(USD, 'USD', `${METHOD}-quick`);
  await sleep(Math.max(0, expired.expiresAt * 1000 - Date.now()) + 2_000);
  refused(shop, 'an invoice that has expired', await network.payInstead(expired.to, '1000000'));
  await shop.becomes('the same', expired, 'Expired', 0);
}

function mustPay(error: string): void {
  if (error !== '') throw new Error(`a payment failed: ${error}`);
}

function refused(shop: Shop, what: string, error: string): void {
  shop.told(what, error !== '', error === '' ? 'is taken' : `is refused (${error})`, 'refused');
}
