/** Monero's own node and wallet server, and the built program that is paid through them. */
import { type MoneroNetwork } from './monero.ts';
import { type Shop, type ShopInvoice, sleep } from './shop.ts';

/** Of the method `xmr`. */
const CONFIRMATIONS = 10;
/** What is asked for: 10 USD at the sandbox's rate, and of that. */
const XMR = 0.05;
const PICONEROS = 50_000_000_000n;

export async function proveMonero(shop: Shop, network: MoneroNetwork): Promise<void> {
  await provePayments(shop, network);
  await proveUnconfirmed(shop, network);
  await proveDeaths(shop, network);
  await proveAfterExpiry(shop, network);
  await proveReorganization(shop, network); // comes last: the payer's own wallet is confused by it
}

const createInvoice = (shop: Shop): Promise<ShopInvoice> => shop.createInvoice(XMR, 'XMR', 'xmr');
const toPayment = ({ to }: ShopInvoice, units = PICONEROS) => ({ address: to, units });

async function provePayments(shop: Shop, network: MoneroNetwork): Promise<void> {
  const exact = await createInvoice(shop);
  await network.pay([toPayment(exact)]);
  await shop.expectStatus('what was asked for, in no block yet', exact, 'Processing', 0);
  await network.mine(CONFIRMATIONS - 1);
  await shop.expectUnchanged('the same, confirmed once too seldom', exact, 'Processing', 0);
  await network.mine(1);
  await shop.expectStatus('the same, confirmed', exact, 'Settled', 10);

  const [underpaid, parts] = [await createInvoice(shop), await createInvoice(shop)];
  const overpaid = await shop.createInvoice(10, 'USD', 'xmr');
  const outputs = [toPayment(underpaid, 20_000_000_000n), toPayment(overpaid, 80_000_000_000n)];
  await network.pay([...outputs, toPayment(parts, 30_000_000_000n), toPayment(parts, 20_000_000_000n)]);
  const twice = await createInvoice(shop);
  await network.pay([toPayment(twice)]);
  await network.pay([toPayment(twice, 1n)]);
  await network.mine(CONFIRMATIONS);
  await shop.expectStatus('less, in one transaction with three others', underpaid, 'New', 4);
  await shop.expectStatus('more, in the same transaction', overpaid, 'Settled', 16);
  await shop.expectStatus('two outputs of it to one address', parts, 'Settled', 10);
  await shop.expectStatus('two transactions, one of a piconero', twice, 'Settled', 10.0000000002);
}

async function proveUnconfirmed(shop: Shop, network: MoneroNetwork): Promise<void> {
  const dropped = await createInvoice(shop);
  const txid = await network.pay([toPayment(dropped)]);
  await shop.expectStatus('what is in no block', dropped, 'Processing', 0);
  await shop.expectUnchanged('the same after a while', dropped, 'Processing', 0);
  await network.dropTransaction(txid);
  await shop.expectStatus('the same, forgotten by the network', dropped, 'New', 0);

  const locked = await createInvoice(shop);
  await network.pay([toPayment(locked)], (await network.getHeight()) + 40);
  await network.mine(CONFIRMATIONS + 5);
  await shop.expectUnchanged('what its payer has locked for 40 blocks, confirmed', locked, 'New', 0);
  await network.mine(30);
  await shop.expectStatus('the same, when it can be spent', locked, 'Settled', 10);
}

async function proveDeaths(shop: Shop, network: MoneroNetwork): Promise<void> {
  const before = await createInvoice(shop);
  await network.killMerchant();
  await network.pay([toPayment(before)]);
  await network.mine(CONFIRMATIONS);
  await network.startMerchant();
  const after = await createInvoice(shop);
  shop.report('the wallet server was killed: the next address', after.to !== before.to, 'is another', 'another');
  await shop.expectStatus('what was paid while it was dead', before, 'Settled', 10);
  await shop.expectUnchanged('the invoice that was made after that', after, 'New', 0);
}

async function proveAfterExpiry(shop: Shop, network: MoneroNetwork): Promise<void> {
  const expired = await shop.createInvoice(XMR, 'XMR', 'xmr-quick');
  await shop.setRates({ xmr_usd: '202' });
  await sleep(Math.max(0, expired.expiresAt * 1000 - Date.now()) + 5_000);
  await network.pay([toPayment(expired)]);
  await network.mine(CONFIRMATIONS);
  await shop.expectStatus('what came after the expiry, when the rate was higher', expired, 'Settled', 10.1);
  await shop.setRates({ xmr_usd: '200' });
}

async function proveReorganization(shop: Shop, network: MoneroNetwork): Promise<void> {
  const [surviving, reversed] = [await createInvoice(shop), await createInvoice(shop)];
  await network.pay([toPayment(surviving)]);
  const txid = await network.pay([toPayment(reversed)]);
  await network.mine(CONFIRMATIONS);
  await shop.expectStatus('two payments, confirmed', surviving, 'Settled', 10);
  await shop.expectStatus('the other one', reversed, 'Settled', 10);
  // No more than these: before what it mixes with is ten blocks old, a transaction is none.
  await network.undo(CONFIRMATIONS);
  await network.dropTransaction(txid);
  await network.mine(CONFIRMATIONS + 15);
  await shop.expectUnchanged('the one that other blocks have as well', surviving, 'Settled', 10);
  const stop = network.mineOn();
  await shop.expectStatus('the one that none has any more', reversed, 'Invalid', 0);
  await stop();
  await shop.expectUnchanged('the one that other blocks have as well', surviving, 'Settled', 10);
}
