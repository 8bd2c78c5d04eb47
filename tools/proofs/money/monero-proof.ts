/** Payments through Monero's node and wallet server. */
import { type MoneroNetwork } from './monero.ts';
import { type Shop, type ShopInvoice, sleep } from './shop.ts';

/** The confirmations that the method `xmr` requires. */
const CONFIRMATIONS = 10;
/** The amount of an invoice: 10 USD at the sandbox's exchange rate. */
const XMR = 0.05;
const PICONEROS = 50_000_000_000n;

export async function proveMonero(shop: Shop, network: MoneroNetwork): Promise<void> {
  await provePayments(shop, network);
  await proveUnconfirmed(shop, network);
  await proveDeaths(shop, network);
  await proveAfterExpiry(shop, network);
  await proveReorganization(shop, network); // last, because it leaves the payer's wallet inconsistent
}

const createInvoice = (shop: Shop): Promise<ShopInvoice> => shop.createInvoice(XMR, 'XMR', 'xmr');
const toPayment = ({ to }: ShopInvoice, units = PICONEROS) => ({ address: to, units });

async function provePayments(shop: Shop, network: MoneroNetwork): Promise<void> {
  const exact = await createInvoice(shop);
  await network.pay([toPayment(exact)]);
  await shop.expectStatus('the requested amount, in no block yet', exact, 'Processing', 0);
  await network.mine(CONFIRMATIONS - 1);
  await shop.expectUnchanged('the same payment, with one confirmation too few', exact, 'Processing', 0);
  await network.mine(1);
  await shop.expectStatus('the same payment, confirmed', exact, 'Settled', 10);

  const [underpaid, parts] = [await createInvoice(shop), await createInvoice(shop)];
  const overpaid = await shop.createInvoice(10, 'USD', 'xmr');
  const outputs = [toPayment(underpaid, 20_000_000_000n), toPayment(overpaid, 80_000_000_000n)];
  await network.pay([...outputs, toPayment(parts, 30_000_000_000n), toPayment(parts, 20_000_000_000n)]);
  const twice = await createInvoice(shop);
  await network.pay([toPayment(twice)]);
  await network.pay([toPayment(twice, 1n)]);
  await network.mine(CONFIRMATIONS);
  await shop.expectStatus('too little, in one transaction with three other outputs', underpaid, 'New', 4);
  await shop.expectStatus('too much, in the same transaction', overpaid, 'Settled', 16);
  await shop.expectStatus('two outputs of that transaction to one address', parts, 'Settled', 10);
  await shop.expectStatus('two transactions, one of them of a piconero', twice, 'Settled', 10.0000000002);
}

async function proveUnconfirmed(shop: Shop, network: MoneroNetwork): Promise<void> {
  const dropped = await createInvoice(shop);
  const txid = await network.pay([toPayment(dropped)]);
  await shop.expectStatus('a transaction in no block', dropped, 'Processing', 0);
  await shop.expectUnchanged('the same transaction after a while', dropped, 'Processing', 0);
  await network.dropTransaction(txid);
  await shop.expectStatus('the same transaction, dropped by the network', dropped, 'New', 0);

  const locked = await createInvoice(shop);
  await network.pay([toPayment(locked)], (await network.getHeight()) + 40);
  await network.mine(CONFIRMATIONS + 5);
  await shop.expectUnchanged('a confirmed payment that its payer has locked for 40 blocks', locked, 'New', 0);
  await network.mine(30);
  await shop.expectStatus('the same payment, after it was unlocked', locked, 'Settled', 10);
}

async function proveDeaths(shop: Shop, network: MoneroNetwork): Promise<void> {
  const before = await createInvoice(shop);
  await network.killMerchant();
  await network.pay([toPayment(before)]);
  await network.mine(CONFIRMATIONS);
  await network.startMerchant();
  const after = await createInvoice(shop);
  shop.report('the next address after the wallet server was killed', after.to !== before.to, 'another', 'another');
  await shop.expectStatus('a payment while the wallet server was down', before, 'Settled', 10);
  await shop.expectUnchanged('the invoice that was created afterwards', after, 'New', 0);
}

async function proveAfterExpiry(shop: Shop, network: MoneroNetwork): Promise<void> {
  const expired = await shop.createInvoice(XMR, 'XMR', 'xmr-quick');
  await shop.setRates({ xmr_usd: '202' });
  await sleep(Math.max(0, expired.expiresAt * 1000 - Date.now()) + 5_000);
  await network.pay([toPayment(expired)]);
  await network.mine(CONFIRMATIONS);
  await shop.expectStatus('a payment after expiry, at a higher exchange rate', expired, 'Settled', 10.1);
  await shop.setRates({ xmr_usd: '200' });
}

async function proveReorganization(shop: Shop, network: MoneroNetwork): Promise<void> {
  const [surviving, reversed] = [await createInvoice(shop), await createInvoice(shop)];
  await network.pay([toPayment(surviving)]);
  const txid = await network.pay([toPayment(reversed)]);
  await network.mine(CONFIRMATIONS);
  await shop.expectStatus('the first of two payments, confirmed', surviving, 'Settled', 10);
  await shop.expectStatus('the second of two payments, confirmed', reversed, 'Settled', 10);
  // Undoes no more blocks than were mined since the payments. Otherwise the outputs that the payments mix with would be
  // less than ten blocks old, and the payments invalid.
  await network.undo(CONFIRMATIONS);
  await network.dropTransaction(txid);
  await network.mine(CONFIRMATIONS + 15);
  await shop.expectUnchanged('the payment that the new blocks include', surviving, 'Settled', 10);
  const stop = network.mineOn();
  await shop.expectStatus('the payment that the new blocks do not include', reversed, 'Invalid', 0);
  await stop();
  await shop.expectUnchanged('the payment that the new blocks include', surviving, 'Settled', 10);
}
