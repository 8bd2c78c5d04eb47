/** Payments that are not as requested: far too large, after the price fell, or reported for two invoices. */
import { type Customer, type ProofCluster, post } from '../../cluster.ts';
import type { BackendRelay } from './backend-relay.ts';

const MAX_WAIT_MS = 90_000;
const POLL_INTERVAL_MS = 100;
/** Each check of the rate creates an invoice. */
const RATE_INTERVAL_MS = 3_000;
const NO_PAYMENTS = '0 payments exceed the maximum of their method: 0 USD are owed';

/** The expected values are those of the sandbox's initial rates, which are in its README. */
const LTC_USD = 100;
/** Less than RATE_MAX_JUMP below the first rate. */
const FALLEN_LTC_USD = 85;

export interface Invoice {
  readonly id: string;
  readonly to: string;
  readonly due: string;
}

export type Check = (isSo: boolean, what: string) => void;

/** Runs all cases one after the other. They need the initial rates, and leave the one of litecoin changed. */
export async function proveUnusualPayments(cluster: ProofCluster, relay: BackendRelay, check: Check): Promise<void> {
  await proveMaximum(cluster, check);
  await proveFallenPrice(cluster, check);
  await proveContest(cluster, relay, check);
}

/** Two invoices for 0.10 USD are paid with 10,000 USD each. A person credits one excess and refunds the other. */
async function proveMaximum(cluster: ProofCluster, check: Check): Promise<void> {
  const customers = [await cluster.createCustomer(0), await cluster.createCustomer(0)] as const;
  for (const customer of customers) {
    const invoice = await createInvoice(cluster, 'btc-lightning', 0.1, customer);
    await payLightning(cluster, invoice, '10000000000');
    await waitUntilSettled(cluster, invoice);
  }
  const [credited, refunded] = customers;
  // the bonus of 5 % on 0.101 USD
  await checkBalance({ cluster, check }, credited, 1_000.00505, '10,000 USD for 0.10 USD');
  const { output } = await cluster.runLedger('payments');
  const matches = [...output.matchAll(/^\S+ {2}(\S+) (\S+) {2}9000 USD/gm)].map(([, topup = '', id = '']) => [
    topup,
    id,
  ]);
  check(matches.length === 2, `the ledger lists ${matches.length} of 2 payments with 9,000 USD above the maximum`);
  for (const [i, command] of (['credit', 'refund'] as const).entries()) {
    const reason = command === 'refund' ? ['--why', 'sent back'] : [];
    const { code } = await cluster.runLedger('payments', command, ...(matches[i] ?? []), ...reason);
    check(code === 0, `payments ${command} ends with ${code}`);
  }
  const isCredited = async () => (await cluster.fetchBalance(credited)).balance > 9_999;
  check(await isTrueInTime(isCredited), 'the excess is credited');
  await checkBalance({ cluster, check }, credited, 10_000.00505, 'after payments credit');
  await checkBalance({ cluster, check }, refunded, 1_000.00505, 'after payments refund');
  const after = (await cluster.runLedger('payments')).output;
  check(after.includes(NO_PAYMENTS), `the ledger lists neither: ${after.split('\n')[0]}`);
}

/** An invoice for 2 USD in litecoin is paid with 1 LTC after the price has fallen. */
async function proveFallenPrice(cluster: ProofCluster, check: Check): Promise<void> {
  const customer = await cluster.createCustomer(0);
  const invoice = await createInvoice(cluster, 'ltc', 2, customer);
  check(Number(invoice.due) === 2 / LTC_USD, `2 USD are ${invoice.due} LTC before the price falls`);
  await setRate(cluster, FALLEN_LTC_USD);
  const hasFallen = async () =>
    Number((await createInvoice(cluster, 'ltc', 2, customer)).due).toFixed(4) === (2 / FALLEN_LTC_USD).toFixed(4);
  check(await isTrueInTime(hasFallen, RATE_INTERVAL_MS), `new invoices have the rate of ${FALLEN_LTC_USD} USD`);
  await payOnChain(cluster, invoice, { coin: 'LTC', amount: '1' });
  await waitUntilSettled(cluster, invoice);
  // 2.02 USD, the amount with its tolerance, and 0.9798 LTC at the lower rate
  const usd = 2.02 + 0.9798 * FALLEN_LTC_USD;
  await checkBalance({ cluster, check }, customer, usd, '1 LTC for an invoice of 2 USD, after a fall of 15 %');
}

/** BTCPay reports one payment on the invoices of two accounts. */
async function proveContest(cluster: ProofCluster, relay: BackendRelay, check: Check): Promise<void> {
  const [owner, other] = [await cluster.createCustomer(0), await cluster.createCustomer(0)];
  const { txid } = await reportTwice(cluster, relay, [owner, other]);
  const findKey = async () =>
    new RegExp(`^\\S+ {2}(\\S*${txid}\\S*) `, 'm').exec((await cluster.runLedger('payments')).output)?.[1];
  const isContested = async () => (await findKey()) !== undefined;
  check(await isTrueInTime(isContested), 'the ledger lists the payment that is reported twice');
  await checkBalance({ cluster, check }, owner, 10, 'the first account');
  await checkBalance({ cluster, check }, other, 0, 'the second account');
  const isReported = async () =>
    (cluster.processes.get('sagas')?.outputChunks.join('') ?? '')
      .split('\n')
      .some((line) => /"level":"error",/.test(line) && line.includes('was also reported for'));
  check(await isTrueInTime(isReported), 'the sagas report it to the operator in their log');
  const { code } = await cluster.runLedger('payments', 'close', String(await findKey()), '--why', 'proved');
  check(code === 0 && !(await isContested()), 'payments close ends it');
}

/**
 * Pays an invoice of 10 USD of each account on-chain. BTCPay reports both payments as the first one.
 * @returns the id of that transaction, and a function that waits until both invoices are settled
 */
export async function reportTwice(
  cluster: ProofCluster,
  relay: BackendRelay,
  customers: readonly [Customer, Customer],
) {
  const [owner, other] = customers;
  const first = await createInvoice(cluster, 'btc', 10, owner);
  const second = await createInvoice(cluster, 'btc', 10, other);
  const txid = await payOnChain(cluster, first, { coin: 'BTC', amount: first.due });
  await waitUntilSettled(cluster, first);
  await payAs(cluster, relay, { invoice: second, txid });
  return { txid, waitForBoth: () => waitUntilSettled(cluster, second) };
}

/** Pays an invoice in bitcoin. BTCPay reports this as the transaction `txid`. */
export async function payAs(
  cluster: ProofCluster,
  relay: BackendRelay,
  { invoice, txid }: { readonly invoice: Invoice; readonly txid: string },
): Promise<void> {
  const onSent = (sent: string) => relay.reportAs(sent, txid);
  await payOnChain(cluster, invoice, { coin: 'BTC', amount: invoice.due, onSent });
}

export async function createInvoice(
  { gateways: [api] }: ProofCluster,
  method: string,
  amount: number,
  { apiKey }: Customer,
): Promise<Invoice> {
  const response = await post(`${api}/topup/create/${method}`, { amount, currency: 'USD' }, apiKey);
  if (response.invoice_id === undefined) throw new Error(`no invoice was created: ${JSON.stringify(response)}`);
  const to = String(response.lightning_invoice ?? response.address);
  return { id: String(response.invoice_id), to, due: String(response.crypto_amount_due) };
}

/** @param msat the requested amount by default. @returns the payment hash */
export async function payLightning({ sandbox }: ProofCluster, { to }: Invoice, msat?: string): Promise<string> {
  const { payment_hash, error } = await post(`${sandbox}/wallet/pay`, { invoice: to, amount_msat: msat });
  if (error !== undefined) throw new Error(String(error));
  return String(payment_hash);
}

interface OnChainPayment {
  readonly coin: 'BTC' | 'LTC';
  readonly amount: string;
  /** Called before the transaction is in a block. */
  readonly onSent?: (txid: string) => void;
}

/** @returns the id of the transaction, which then has enough confirmations */
export async function payOnChain(
  { sandbox }: ProofCluster,
  { to }: Invoice,
  { coin, amount, onSent }: OnChainPayment,
): Promise<string> {
  const { txid, error } = await post(`${sandbox}/wallet/send`, { coin, address: to, amount });
  if (error !== undefined) throw new Error(String(error));
  onSent?.(String(txid));
  await post(`${sandbox}/chains/${coin}/mine`, { blocks: 6 });
  return String(txid);
}

async function setRate({ sandbox }: ProofCluster, usd: number): Promise<void> {
  const response = await fetch(`${sandbox}/rates`, { method: 'PUT', body: JSON.stringify({ ltc_usd: String(usd) }) });
  if (!response.ok) throw new Error(`the rate was not set: ${await response.text()}`);
}

export async function waitUntilSettled({ gateways: [api] }: ProofCluster, { id }: Invoice): Promise<void> {
  const isSettled = async () => {
    const { status } = (await (await fetch(`${api}/topup/status/${id}`)).json()) as { status: string };
    return status === 'Settled';
  };
  if (!(await isTrueInTime(isSettled))) throw new Error(`the invoice ${id} was not settled in time`);
}

async function checkBalance(
  { cluster, check }: { readonly cluster: ProofCluster; readonly check: Check },
  customer: Customer,
  usd: number,
  what: string,
): Promise<void> {
  const { balance } = await cluster.fetchBalance(customer);
  check(Math.abs(balance - usd) < 1e-9, `${what}: the balance is ${balance} USD, expected ${usd}`);
}

/** Evaluates `isTrue` until it returns true. @returns false if it does not within MAX_WAIT_MS */
export async function isTrueInTime(isTrue: () => Promise<boolean>, intervalMs = POLL_INTERVAL_MS): Promise<boolean> {
  const deadline = performance.now() + MAX_WAIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
  return true;
}
