/**
 * `npm run prove:upgrade -- <directory>`: an older build, from before payments were claimed, runs in the directory. It
 * is killed with paid and unpaid invoices, credited payments, running responses, and one payment that it has credited
 * to two accounts. This build continues with its data: it credits what was paid, claims the earlier payments, names the
 * repeated one, ends the holds, and verifies with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { BackendRelay } from './invoices/backend-relay.ts';
import {
  createInvoice,
  type Invoice,
  isTrueInTime,
  payAs,
  payLightning,
  payOnChain,
  reportTwice,
  waitUntilSettled,
} from './invoices/unusual-payments.ts';

const INVOICES = 20;
const RUNNING_RESPONSES = 3;
/** An invoice of 10 USD, with the bonus of 5 %. */
const CREDIT_USD = 10.5;
const ROLES = ['projector', 'sagas', 'gateway'] as const;

let failed = 0;
function check(isSo: boolean, what: string): void {
  process.stdout.write(`${what}; ${isSo ? 'right' : 'WRONG'}\n`);
  if (!isSo) failed++;
}

async function createInvoices(cluster: ProofCluster, customer: Customer): Promise<readonly Invoice[]> {
  return Promise.all(Array.from({ length: INVOICES }, () => createInvoice(cluster, 'btc-lightning', 10, customer)));
}

async function startRoles(cluster: ProofCluster): Promise<void> {
  for (const role of ROLES) await cluster.startRole(role);
}

async function killRoles(cluster: ProofCluster): Promise<void> {
  for (const role of ROLES.toReversed()) {
    await cluster.processes.get(role)?.kill();
    cluster.processes.delete(role);
  }
}

async function startResponses({ gateways: [api] }: ProofCluster, { apiKey }: Customer): Promise<void> {
  const content = '[[sandbox tokens=4000 chunk_delay=1000]]';
  const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content }], max_tokens: 4_000, stream: true };
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  await Promise.all(Array.from({ length: RUNNING_RESPONSES }, () => fetch(`${api}/v1/chat/completions`, request)));
}

/** Returns the accounts, and what was open when the older build was killed. */
async function runOlderBuild(cluster: ProofCluster, relay: BackendRelay) {
  const [owner, other, payer, busy] = [
    await cluster.createCustomer(0),
    await cluster.createCustomer(0),
    await cluster.createCustomer(0),
    await cluster.createCustomer(10),
  ];
  const earlier = await createInvoice(cluster, 'btc', 10, owner);
  const earlierTxid = await payOnChain(cluster, earlier, { coin: 'BTC', amount: earlier.due });
  await waitUntilSettled(cluster, earlier);
  const { txid, waitForBoth } = await reportTwice(cluster, relay, [owner, other]);
  await waitForBoth();
  check((await cluster.fetchBalance(other)).balance === 10, 'the older build credits a payment to two accounts');
  const open = await createInvoices(cluster, payer);
  const interrupted = await createInvoices(cluster, payer);
  await startResponses(cluster, busy);
  check((await cluster.fetchBalance(busy)).held_usd > 0, `${RUNNING_RESPONSES} responses hold money`);
  const payments = interrupted.map((invoice) => payLightning(cluster, invoice));
  await waitUntilSettled(cluster, interrupted[0] as Invoice);
  await killRoles(cluster);
  await Promise.all(payments);
  return { owner, other, payer, busy, earlierTxid, txid, open, interrupted };
}

async function checkUpgrade(cluster: ProofCluster, relay: BackendRelay): Promise<void> {
  const before = await runOlderBuild(cluster, relay);
  const { owner, other, payer, busy, txid } = before;
  for (const invoice of before.open) await payLightning(cluster, invoice);
  await startRoles(cluster.useBuild(root));
  await cluster.waitUntilReady();
  for (const invoice of [...before.open, ...before.interrupted]) await waitUntilSettled(cluster, invoice);
  const fetchUsd = async (customer: Customer) => (await cluster.fetchBalance(customer)).balance;
  const paidUsd = await fetchUsd(payer);
  check(paidUsd === 2 * INVOICES * CREDIT_USD, `${2 * INVOICES} paid invoices: the balance is ${paidUsd} USD`);
  const isReleased = async () => (await cluster.fetchBalance(busy)).held_usd === 0;
  check(await isTrueInTime(isReleased), 'the holds end');
  const isListed = (command: string) => async () => (await cluster.runLedger(command)).output.includes(txid);
  for (const command of ['payments', 'wallets', 'verify'])
    check(await isTrueInTime(isListed(command)), `ledger ${command} names the payment of two accounts`);
  await checkEarlierClaim(cluster, relay, { customer: payer, txid: before.earlierTxid });
  const balances = [await fetchUsd(owner), await fetchUsd(other), await fetchUsd(payer)];
  check(balances.join() === [20, 10, paidUsd].join(), `the balances are still ${balances} USD`);
  for (const command of ['payments', 'verify']) {
    const { code, output } = await cluster.runLedger(command);
    check(code === 0, `${output.trim()}\nledger ${command} ends with ${code}`);
  }
}

/** A payment from before the upgrade is reported for another invoice, which gets nothing. */
async function checkEarlierClaim(
  cluster: ProofCluster,
  relay: BackendRelay,
  { customer, txid }: { readonly customer: Customer; readonly txid: string },
): Promise<void> {
  const invoice = await createInvoice(cluster, 'btc', 10, customer);
  await payAs(cluster, relay, { invoice, txid });
  const isContested = async () => (await cluster.runLedger('payments')).output.includes(txid);
  check(await isTrueInTime(isContested), 'an earlier payment is claimed: another invoice cannot have it');
}

const [olderBuild] = process.argv.slice(2);
if (olderBuild === undefined)
  throw new Error('name the directory of an older build: npm run prove:upgrade -- <directory>');
const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-upgrade-'));
const cluster = await ProofCluster.start(dataDir, 0, {}, path.resolve(olderBuild));
const relay = await BackendRelay.start(cluster.sandbox);
cluster.addSettings({
  LND_REST_URL: `${relay.url}/lnd`,
  BTCPAY_URL: `${relay.url}/btcpay`,
  BTCPAY_STORE_ID: 'sandbox',
  BTCPAY_API_KEY: 'sandbox',
});
try {
  await cluster.stopRole('sagas');
  await cluster.stopRole('projector');
  await startRoles(cluster);
  await checkUpgrade(cluster, relay);
  if (failed > 0) process.exitCode = 1;
} finally {
  relay.close();
  await cluster.stop();
  await rm(dataDir, { recursive: true });
}
