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
  await proveLate(shop, network);
  await proveUndone(shop, network); // comes last: the payer's own wallet is confused by it
}

const invoiced = (shop: Shop): Promise<ShopInvoice> => shop.invoice(XMR, 'XMR', 'xmr');
const paid = ({ to }: ShopInvoice, units = PICONEROS) => ({ address: to, units });

async function provePayments(shop: Shop, network: MoneroNetwork): Promise<void> {
  const exact = await invoiced(shop);
  await network.pay([paid(exact)]);
  await shop.becomes('what was asked for, in no block yet', exact, 'Processing', 0);
  await network.mine(CONFIRMATIONS - 1);
  await shop.stays('the same, confirmed once too seldom', exact, 'Processing', 0);
  await network.mine(1);
  await shop.becomes('the same, confirmed', exact, 'Settled', 10);

  const [less, parts] = [await invoiced(shop), await invoiced(shop)];
  const more = await shop.invoice(10, 'USD', 'xmr');
  const outputs = [paid(less, 20_000_000_000n), paid(more, 80_000_000_000n)];
  await network.pay([...outputs, paid(parts, 30_000_000_000n), paid(parts, 20_000_000_000n)]);
  const twice = await invoiced(shop);
  await network.pay([paid(twice)]);
  await network.pay([paid(twice, 1n)]);
  await network.mine(CONFIRMATIONS);
  await shop.becomes('less, in one transaction with three others', less, 'New', 4);
  await shop.becomes('more, in the same transaction', more, 'Settled', 16);
  await shop.becomes('two outputs of it to one address', parts, 'Settled', 10);
  await shop.becomes('two transactions, one of a piconero', twice, 'Settled', 10.0000000002);
}

async function proveUnconfirmed(shop: Shop, network: MoneroNetwork): Promise<void> {
  const forgotten = await invoiced(shop);
  const txid = await network.pay([paid(forgotten)]);
  await shop.becomes('what is in no block', forgotten, 'Processing', 0);
  await shop.stays('the same after a while', forgotten, 'Processing', 0);
  await network.forget(txid);
  await shop.becomes('the same, forgotten by the network', forgotten, 'New', 0);

  const locked = await invoiced(shop);
  await network.pay([paid(locked)], (await network.height()) + 40);
  await network.mine(CONFIRMATIONS + 5);
  await shop.stays('what its payer has locked for 40 blocks, confirmed', locked, 'New', 0);
  await network.mine(30);
  await shop.becomes('the same, when it can be spent', locked, 'Settled', 10);
}

async function proveDeaths(shop: Shop, network: MoneroNetwork): Promise<void> {
  const before = await invoiced(shop);
  await network.killMerchant();
  await network.pay([paid(before)]);
  await network.mine(CONFIRMATIONS);
  await network.startMerchant();
  const after = await invoiced(shop);
  shop.told('the wallet server was killed: the next address', after.to !== before.to, 'is another', 'another');
  await shop.becomes('what was paid while it was dead', before, 'Settled', 10);
  await shop.stays('the invoice that was made after that', after, 'New', 0);
}

async function proveLate(shop: Shop, network: MoneroNetwork): Promise<void> {
  const late = await shop.invoice(XMR, 'XMR', 'xmr-quick');
  await shop.rate({ xmr_usd: '202' });
  await sleep(Math.max(0, late.expiresAt * 1000 - Date.now()) + 5_000);
  await network.pay([paid(late)]);
  await network.mine(CONFIRMATIONS);
  await shop.becomes('what came after the expiry, when the rate was higher', late, 'Settled', 10.1);
  await shop.rate({ xmr_usd: '200' });
}

async function proveUndone(shop: Shop, network: MoneroNetwork): Promise<void> {
  const [kept, undone] = [await invoiced(shop), await invoiced(shop)];
  await network.pay([paid(kept)]);
  const txid = await network.pay([paid(undone)]);
  await network.mine(CONFIRMATIONS);
  await shop.becomes('two payments, confirmed', kept, 'Settled', 10);
  await shop.becomes('the other one', undone, 'Settled', 10);
  // No more than these: before what it mixes with is ten blocks old, a transaction is none.
  await network.undo(CONFIRMATIONS);
  await network.forget(txid);
  await network.mine(CONFIRMATIONS + 15);
  await shop.stays('the one that other blocks have as well', kept, 'Settled', 10);
  const stop = network.mineOn();
  await shop.becomes('the one that none has any more', undone, 'Invalid', 0);
  await stop();
  await shop.stays('the one that other blocks have as well', kept, 'Settled', 10);
}
