/**
 * `npm run prove:invoices`: 10,000 Lightning invoices and 10,000 bitcoin addresses are open at once, at the LND node
 * and the BTCPay Server of the sandbox. Payments are credited within 3 s (p99) if the node or a webhook reports them,
 * else within one polling cycle and 5 s (p99). Neither payment backend gets more polls within a second than
 * TOPUP_LOOKS_PER_SECOND plus 16. Before that, payments far above their invoice, after a fall of the price, and
 * reported for two invoices get what docs/top-ups.md says. Afterwards the ledger verifies with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster, post } from '../cluster.ts';
import { BackendRelay } from './invoices/backend-relay.ts';
import { proveUnusualPayments } from './invoices/unusual-payments.ts';

const OPEN = Number(process.env.OPEN ?? 10_000);
const PER_SECOND = Number(process.env.TOPUP_LOOKS_PER_SECOND ?? 50);
const ACCOUNTS = 20;
const CREATED_AT_ONCE = 32;
/** The number of payments that each payment backend reports. */
const HINTED = Math.min(300, OPEN / 2);
/** The number of further payments per payment backend, which are not reported. */
const UNHINTED = Math.min(50, OPEN / 4);
/** The confirmations that BTCPay waits for with the default terms of the payment method. */
const CONFIRMATIONS = 6;
const PAID_EVERY_MS = 50;
const HINTED_WITHIN_MS = 3_000;
/** Added to a polling cycle, for delayed polls and the credit. */
const MARGIN_MS = 5_000;
const POLL_INTERVAL_MS = 25;
/** The number of requests that may run at once. One second may have this many polls more than the rate allows. */
const BURST = 16;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);

interface Invoice {
  readonly method: 'btc-lightning' | 'btc';
  readonly id: string;
  readonly to: string;
  /** In bitcoins. */
  readonly due: string;
}

async function createInvoices(api: string, customers: readonly Customer[]): Promise<readonly Invoice[]> {
  const invoices: Invoice[] = [];
  let next = 0;
  const createNext = async (): Promise<void> => {
    for (let i = next++; i < 2 * OPEN; i = next++) {
      const method = i % 2 === 0 ? 'btc-lightning' : 'btc';
      const { apiKey } = customers[i % ACCOUNTS] as Customer;
      const response = await post(`${api}/topup/create/${method}`, { amount: 10, currency: 'USD' }, apiKey);
      if (response.invoice_id === undefined) throw new Error(`no invoice was created: ${JSON.stringify(response)}`);
      const to = String(response.lightning_invoice ?? response.address);
      invoices.push({ method, id: String(response.invoice_id), to, due: String(response.crypto_amount_due) });
    }
  };
  await Promise.all(Array.from({ length: CREATED_AT_ONCE }, createNext));
  return invoices;
}

/** @returns milliseconds from before the payment until the invoice is Settled; infinity after 3 × `maxMs` */
async function payAndWait(
  cluster: ProofCluster,
  invoice: Invoice,
  isUnhinted: boolean,
  maxMs: number,
): Promise<number> {
  const started = performance.now();
  await pay(cluster, invoice, isUnhinted);
  const [api = ''] = cluster.gateways;
  for (;;) {
    const { status } = (await (await fetch(`${api}/topup/status/${invoice.id}`)).json()) as { status: string };
    const elapsedMs = performance.now() - started;
    if (status === 'Settled') return elapsedMs;
    if (elapsedMs > 3 * maxMs) return Number.POSITIVE_INFINITY;
    await sleep(isUnhinted ? 10 * POLL_INTERVAL_MS : POLL_INTERVAL_MS);
  }
}

async function pay({ sandbox }: ProofCluster, { method, to, due }: Invoice, isUnhinted: boolean): Promise<void> {
  const orders: readonly [path: string, order: object][] =
    method === 'btc-lightning'
      ? [['/wallet/pay', { invoice: to, report: isUnhinted ? 'never' : 'once' }]]
      : [
          ['/wallet/send', { coin: 'BTC', address: to, amount: due }],
          ['/chains/BTC/mine', { blocks: CONFIRMATIONS }],
        ];
  for (const [where, order] of orders) {
    const { error } = await post(sandbox + where, order);
    if (error !== undefined) throw new Error(String(error));
  }
}

async function payAll(
  cluster: ProofCluster,
  invoices: readonly Invoice[],
  isUnhinted: boolean,
  maxMs: number,
): Promise<readonly number[]> {
  const waits: Promise<number>[] = [];
  for (const invoice of invoices) {
    waits.push(payAndWait(cluster, invoice, isUnhinted, maxMs));
    await sleep(PAID_EVERY_MS);
  }
  return (await Promise.all(waits)).toSorted((a, b) => a - b);
}

function report(what: string, waits: readonly number[], maxMs: number): boolean {
  const getPercentile = (part: number) =>
    waits[Math.min(waits.length - 1, Math.ceil(waits.length * part) - 1)] as number;
  if (waits.length === 0) throw new Error('nothing was paid');
  const [p50, p99, last] = [getPercentile(0.5), getPercentile(0.99), getPercentile(1)].map(
    (waitMs) => `${(waitMs / 1000).toFixed(2)} s`,
  );
  const holds = getPercentile(0.99) <= maxMs;
  print(
    `${what}: credited after ${p50} (p50), ${p99} (p99), ${last} (last of ${waits.length}); ${holds ? 'in time' : 'TOO LATE'}`,
  );
  return holds;
}

/** Removes all webhooks of BTCPay. If `isEnabled`, registers one, as an operator does, which reports payments. */
async function setWebhook(cluster: ProofCluster, isEnabled: boolean): Promise<void> {
  const store = `${cluster.sandbox}/btcpay/api/v1/stores/sandbox/webhooks`;
  const headers = { authorization: 'token sandbox', 'content-type': 'application/json' };
  const url = `${cluster.gateways[0]}/topup/webhooks/btcpay`;
  for (const { id } of (await (await fetch(store, { headers })).json()) as { id: string }[])
    await fetch(`${store}/${id}`, { method: 'DELETE', headers });
  if (!isEnabled) return;
  const response = await fetch(store, { method: 'POST', headers, body: JSON.stringify({ url, secret: 'sandbox' }) });
  if (!response.ok) throw new Error(`the webhook was not created: ${await response.text()}`);
}

async function proveAll(cluster: ProofCluster, relay: BackendRelay): Promise<boolean> {
  const [api = ''] = cluster.gateways;
  const customers = await Promise.all(Array.from({ length: ACCOUNTS }, () => cluster.createCustomer(0)));
  const started = performance.now();
  const invoices = await createInvoices(api, customers);
  const sweepMs = (OPEN / PER_SECOND) * 1_000;
  print(
    `${OPEN} Lightning invoices and ${OPEN} addresses were created in ${((performance.now() - started) / 1000).toFixed(0)} s`,
  );
  print(`${PER_SECOND} requests per second to each payment backend: one polling cycle takes ${sweepMs / 1000} s`);
  await setWebhook(cluster, true);
  let holds = true;
  for (const method of ['btc-lightning', 'btc'] as const) {
    const methodInvoices = invoices.filter((invoice) => invoice.method === method);
    const hinted = await payAll(cluster, methodInvoices.slice(0, HINTED), false, HINTED_WITHIN_MS);
    holds = report(`${method}, with hints`, hinted, HINTED_WITHIN_MS) && holds;
  }
  await setWebhook(cluster, false);
  const maxMs = sweepMs + MARGIN_MS;
  const unhintedReports = (['btc-lightning', 'btc'] as const).map(async (method) => {
    const methodInvoices = invoices.filter((invoice) => invoice.method === method).slice(HINTED, HINTED + UNHINTED);
    return report(`${method}, without hints`, await payAll(cluster, methodInvoices, true, maxMs), maxMs);
  });
  holds = (await Promise.all(unhintedReports)).every(Boolean) && holds;
  for (const method of ['btc-lightning', 'btc'] as const) {
    const maxPerSecond = relay.getMaxPerSecond(method);
    const isWithinLimit = maxPerSecond <= PER_SECOND + BURST;
    print(`${method}: at most ${maxPerSecond} polls within a second; ${isWithinLimit ? 'allowed' : 'TOO MANY'}`);
    holds = holds && isWithinLimit;
  }
  return holds;
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-invoices-'));
const bare = await ProofCluster.start(dataDir, 0, {});
const relay = await BackendRelay.start(bare.sandbox);
const cluster = bare.addSettings({
  LND_REST_URL: `${relay.url}/lnd`,
  BTCPAY_URL: `${relay.url}/btcpay`,
  BTCPAY_STORE_ID: 'sandbox',
  BTCPAY_API_KEY: 'sandbox',
  BTCPAY_WEBHOOK_SECRET: 'sandbox',
  MAX_OPEN_INVOICES: String(OPEN),
  TOPUP_LOOKS_PER_SECOND: String(PER_SECOND),
});
try {
  await cluster.stopRole('sagas');
  await cluster.startRole('sagas');
  await cluster.startRole('gateway', 'gateway 1');
  let holds = true;
  await proveUnusualPayments(cluster, relay, (isSo, what) => {
    print(`${what}; ${isSo ? 'right' : 'WRONG'}`);
    holds &&= isSo;
  });
  holds = (await proveAll(cluster, relay)) && holds;
  const { code, output } = await cluster.runLedger('verify');
  print(output.trim());
  if (!holds || code !== 0) process.exitCode = 1;
} finally {
  relay.close();
  await cluster.stop();
  await rm(dataDir, { recursive: true });
}
