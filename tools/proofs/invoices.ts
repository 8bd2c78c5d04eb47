/**
 * `npm run prove:invoices`: 10,000 Lightning invoices and 10,000 bitcoin addresses are open at once, at an LND node and a
 * BTCPay Server that are asked through a counter. Payments are credited within 3 s at p99 where the node or a web hook
 * hints at them, and within one sweep where nothing does; neither back end is asked more often than it may be. The
 * status follows a credit within a second. In the end the books verify with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster, post } from '../cluster.ts';

const OPEN = Number(process.env.OPEN ?? 10_000);
const PER_SECOND = Number(process.env.TOPUP_LOOKS_PER_SECOND ?? 50);
const ACCOUNTS = 20;
const CREATED_AT_ONCE = 32;
/** Payments that are hinted at, and payments that are not, of each back end. */
const HINTED = Math.min(300, OPEN / 2);
const SILENT = Math.min(50, OPEN / 4);
/** As many as BTCPay waits for with the method's own terms. */
const CONFIRMATIONS = 6;
const PAID_EVERY_MS = 50;
const HINTED_WITHIN_MS = 3_000;
/** Beside the sweep itself: one that is on its way, and the credit. */
const MARGIN_MS = 5_000;
const LOOK_AGAIN_MS = 25;
/** Several requests may run at once, so that as many more can fall into a second. */
const BURST = 16;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);

interface Invoice {
  readonly method: 'btc-lightning' | 'btc';
  readonly id: string;
  readonly to: string;
  /** In whole bitcoins. */
  readonly due: string;
}

/** Stands before the sandbox and counts the looks at each back end by the second. */
class Counter {
  readonly looks: Readonly<Record<Invoice['method'], number[]>> = { 'btc-lightning': [], btc: [] };

  private constructor(
    readonly url: string,
    readonly close: () => void,
  ) {}

  static async before(sandbox: string): Promise<Counter> {
    const server = createServer((asked, answer) => {
      counter.count(asked.method ?? '', asked.url ?? '');
      const { method, headers } = asked;
      const passed = forward(`${sandbox}${asked.url}`, { method, headers }, (given) => {
        answer.writeHead(given.statusCode ?? 502, given.headers);
        given.pipe(answer);
      });
      passed.on('error', () => answer.destroy());
      answer.on('close', () => passed.destroy());
      asked.pipe(passed);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const counter = new Counter(url, () => {
      server.close();
      server.closeAllConnections();
    });
    return counter;
  }

  /** The most looks within a second, wherever that begins. */
  busiest(method: Invoice['method']): number {
    const times = this.looks[method];
    let first = 0;
    return times.reduce((most, at, i) => {
      while ((times[first] as number) <= at - 1_000) first++;
      return Math.max(most, i - first + 1);
    }, 0);
  }

  private count(method: string, url: string): void {
    if (method !== 'GET') return;
    if (/^\/lnd\/v1\/invoice\//.test(url)) this.looks['btc-lightning'].push(performance.now());
    if (/^\/btcpay\/.*\/(invoices\?|payment-methods\?only)/.test(url)) this.looks.btc.push(performance.now());
  }
}

async function makeInvoices(api: string, customers: readonly Customer[]): Promise<readonly Invoice[]> {
  const made: Invoice[] = [];
  let next = 0;
  const makeNext = async (): Promise<void> => {
    for (let i = next++; i < 2 * OPEN; i = next++) {
      const method = i % 2 === 0 ? 'btc-lightning' : 'btc';
      const { apiKey } = customers[i % ACCOUNTS] as Customer;
      const answer = await post(`${api}/topup/create/${method}`, { amount: 10, currency: 'USD' }, apiKey);
      if (answer.invoice_id === undefined) throw new Error(`no invoice: ${JSON.stringify(answer)}`);
      const to = String(answer.lightning_invoice ?? answer.address);
      made.push({ method, id: String(answer.invoice_id), to, due: String(answer.crypto_amount_due) });
    }
  };
  await Promise.all(Array.from({ length: CREATED_AT_ONCE }, makeNext));
  return made;
}

/** @returns milliseconds from the payment until the status says that it is in the balance */
async function paid(cluster: ProofCluster, invoice: Invoice, silent: boolean, within: number): Promise<number> {
  const started = performance.now();
  await pay(cluster, invoice, silent);
  const [api = ''] = cluster.gateways;
  for (;;) {
    const { status } = (await (await fetch(`${api}/topup/status/${invoice.id}`)).json()) as { status: string };
    const took = performance.now() - started;
    if (status === 'Settled') return took;
    if (took > 3 * within) return Number.POSITIVE_INFINITY;
    await sleep(silent ? 10 * LOOK_AGAIN_MS : LOOK_AGAIN_MS);
  }
}

async function pay({ sandbox }: ProofCluster, { method, to, due }: Invoice, silent: boolean): Promise<void> {
  const orders: readonly [path: string, order: object][] =
    method === 'btc-lightning'
      ? [['/wallet/pay', { invoice: to, report: silent ? 'never' : 'once' }]]
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
  silent: boolean,
  within: number,
): Promise<readonly number[]> {
  const waits: Promise<number>[] = [];
  for (const invoice of invoices) {
    waits.push(paid(cluster, invoice, silent, within));
    await sleep(PAID_EVERY_MS);
  }
  return (await Promise.all(waits)).toSorted((a, b) => a - b);
}

function report(what: string, waits: readonly number[], within: number): boolean {
  const at = (part: number) => waits[Math.min(waits.length - 1, Math.ceil(waits.length * part) - 1)] as number;
  if (waits.length === 0) throw new Error('nothing was paid');
  const [p50, p99, last] = [at(0.5), at(0.99), at(1)].map((each) => `${(each / 1000).toFixed(2)} s`);
  const holds = at(0.99) <= within;
  print(
    `${what}: credited after ${p50} (p50), ${p99} (p99), ${last} (last of ${waits.length}); ${holds ? 'holds' : 'TOO LATE'}`,
  );
  return holds;
}

/** Web hooks to every gateway, as the operator has them in BTCPay; none while payments are to be silent. */
async function setHook(cluster: ProofCluster, wanted: boolean): Promise<void> {
  const store = `${cluster.sandbox}/btcpay/api/v1/stores/sandbox/webhooks`;
  const headers = { authorization: 'token sandbox', 'content-type': 'application/json' };
  const url = `${cluster.gateways[0]}/topup/webhooks/btcpay`;
  for (const { id } of (await (await fetch(store, { headers })).json()) as { id: string }[])
    await fetch(`${store}/${id}`, { method: 'DELETE', headers });
  if (!wanted) return;
  const answer = await fetch(store, { method: 'POST', headers, body: JSON.stringify({ url, secret: 'sandbox' }) });
  if (!answer.ok) throw new Error(`no web hook: ${await answer.text()}`);
}

async function proveAll(cluster: ProofCluster, counter: Counter): Promise<boolean> {
  const [api = ''] = cluster.gateways;
  const customers = await Promise.all(Array.from({ length: ACCOUNTS }, () => cluster.customer(0)));
  const started = performance.now();
  const invoices = await makeInvoices(api, customers);
  const sweepMs = (OPEN / PER_SECOND) * 1_000;
  print(
    `${OPEN} Lightning invoices and ${OPEN} addresses were made in ${((performance.now() - started) / 1000).toFixed(0)} s`,
  );
  print(`${PER_SECOND} requests a second to each back end: one sweep of the invoices takes ${sweepMs / 1000} s`);
  await setHook(cluster, true);
  let holds = true;
  for (const method of ['btc-lightning', 'btc'] as const) {
    const own = invoices.filter((each) => each.method === method);
    const hinted = await payAll(cluster, own.slice(0, HINTED), false, HINTED_WITHIN_MS);
    holds = report(`${method}, with hints`, hinted, HINTED_WITHIN_MS) && holds;
  }
  await setHook(cluster, false);
  const within = sweepMs + MARGIN_MS;
  const silent = (['btc-lightning', 'btc'] as const).map(async (method) => {
    const own = invoices.filter((each) => each.method === method).slice(HINTED, HINTED + SILENT);
    return report(`${method}, without hints`, await payAll(cluster, own, true, within), within);
  });
  holds = (await Promise.all(silent)).every(Boolean) && holds;
  for (const method of ['btc-lightning', 'btc'] as const) {
    const most = counter.busiest(method);
    const bounded = most <= PER_SECOND + BURST;
    print(`${method}: at most ${most} looks within a second; ${bounded ? 'holds' : 'TOO MANY'}`);
    holds = holds && bounded;
  }
  return holds;
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-invoices-'));
const relayed = await ProofCluster.start(dataDir, 0, {});
const counter = await Counter.before(relayed.sandbox);
const cluster = relayed.with({
  LND_REST_URL: `${counter.url}/lnd`,
  BTCPAY_URL: `${counter.url}/btcpay`,
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
  const holds = await proveAll(cluster, counter);
  const { code, output } = await cluster.ledger('verify');
  print(output.trim());
  if (!holds || code !== 0) process.exitCode = 1;
} finally {
  counter.close();
  await cluster.stop();
  await rm(dataDir, { recursive: true });
}
